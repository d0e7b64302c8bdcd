#include <iostream>

#include "apps/app.h"
#include "libcore/base/log.h"
#include "libcore/config/cli.h"
#include "libcore/data/samples/sample_order.h"
#include "libcore/io/stop_signal.h"
#include "libcore/train/checkpointing.h"
#include "libcore/train/pretrain.h"
#include "libcore/train/run_rules.h"

namespace megalith {
namespace {

// Exit code of a run that a signal ended: its state is saved, the same command goes on.
constexpr int kTryAgain = exit_code(ErrorKind::kComm);

/// `--dump-sample-order`, as the first word: an app of its own within this one.
int dump_order(int argc, char** argv) {
  SampleOrderOptions order;
  Options options("pretrain --dump-sample-order",
                  "Print which token ids each sample of a run holds, without training.");
  options.add("Samples", order);
  if (!parse_options(options, argc, argv)) return 0;
  dump_sample_order(order, std::cout);
  return 0;
}

std::string after_stop(const PretrainResult& result, bool saves) {
  if (result.saved) return "saved; run the same command to go on";
  return saves ? "no step was done; run the same command again" : "nothing saved: there is no --save";
}

int run_training(int argc, char** argv) {
  const StopSignal stop;
  PretrainConfig config;
  Options options("pretrain", "Train a GPT or LLaMA model on indexed datasets.");
  config.add_to(options);
  options.rule([&](Problems& problems) { check_run(config, problems); })
      .epilog(
          "--dump-sample-order as the first word prints the order of samples instead (see its --help).\n");
  if (!read_options(options, argc, argv)) return 0;
  if (config.checkpoint.use_checkpoint_args)
    if (const auto saved = saved_args(config.checkpoint.load))
      options.adopt(saved->args, saved->folder, {"Model", "Tokenizer"});
  options.check();
  const bool saves = !config.checkpoint.save.empty();
  const PretrainResult result = pretrain(std::move(config), stop);
  if (result.stopped_by.empty()) return 0;
  log("pretrain: stopped by ", result.stopped_by, "; ", after_stop(result, saves));
  return kTryAgain;
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  return megalith::run_app("pretrain", [&] {
    const bool dump = argc > 1 && megalith::option_key(argv[1]) == "--dump-sample-order";
    return dump ? megalith::dump_order(argc - 1, argv + 1) : megalith::run_training(argc, argv);
  });
}
