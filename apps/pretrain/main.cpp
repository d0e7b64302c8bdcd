#include <iostream>
#include <utility>

#include "apps/app.h"
#include "apps/training_app.h"
#include "libcore/config/cli.h"
#include "libcore/data/samples/sample_order.h"
#include "libcore/train/checkpointing.h"
#include "libcore/train/pretrain.h"
#include "libcore/train/run_rules.h"

namespace megalith {
namespace {

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

int run_training(int argc, char** argv) {
  PretrainConfig config;
  TrainingApp app(argc, argv);
  Options options("pretrain", "Train a GPT or LLaMA model on indexed datasets.");
  config.add_to(options);
  options.rule([&](Problems& problems) { check_run(config, problems); })
      .epilog(
          "--dump-sample-order as the first word prints the order of samples instead (see its --help).\n");
  if (!app.read(options)) return 0;
  if (config.checkpoint.use_checkpoint_args)
    if (const auto saved = saved_args(config.checkpoint.load))
      options.adopt(saved->args, saved->folder, {"Model", "Tokenizer"});
  app.plan(config.parallel);
  options.check();
  return app.run(options, "pretrain", !config.checkpoint.save.empty(),
                 [&](const StopSignal& stop, const std::optional<LaunchedRank>& rank) {
                   return pretrain(std::move(config), stop, rank);
                 });
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  return megalith::run_app("pretrain", [&] {
    const bool dump = argc > 1 && megalith::option_key(argv[1]) == "--dump-sample-order";
    return dump ? megalith::dump_order(argc - 1, argv + 1) : megalith::run_training(argc, argv);
  });
}
