#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "apps/app.h"
#include "apps/manual_notes.h"
#include "libcore/base/log.h"
#include "libcore/config/cli.h"
#include "libcore/config/tokenizer_model.h"
#include "libcore/data/samples/sample_order.h"
#include "libcore/io/file.h"
#include "libcore/io/stop_signal.h"
#include "libcore/launch/launch_plan.h"
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

/// The rank's lines go to workerlog.N of `folder`, those of rank 0 to stderr, too.
void keep_log(const std::string& folder, int rank) {
  make_directories(folder);
  const std::string path = concat(folder, "/workerlog.", rank);
  const auto file = std::make_shared<std::ofstream>(path, std::ios::trunc);
  if (!*file) fail(ErrorKind::kIo, path, ": cannot be written; give another --log-dir");
  set_log_sink([file, rank](const std::string& line) {
    *file << line << std::endl;
    if (rank == 0) std::cerr << line << std::endl;
  });
}

std::string after_stop(const PretrainResult& result, bool saves) {
  if (result.saved) return "saved; run the same command to go on";
  return saves ? "no step was done; run the same command again" : "nothing saved: there is no --save";
}

int exit_code_of(const PretrainResult& result, bool saves) {
  if (result.stopped_by.empty()) return 0;
  log("pretrain: stopped by ", result.stopped_by, "; ", after_stop(result, saves));
  return kTryAgain;
}

int run_training(int argc, char** argv) {
  const StopSignal stop;
  PretrainConfig config;
  LaunchConfig launch;
  Options options("pretrain", "Train a GPT or LLaMA model on indexed datasets.");
  config.add_to(options);
  options.add("Processes", launch);
  options.rule([&](Problems& problems) { check_run(config, problems); })
      .epilog(
          "megalith-pretrain --num-layers 4 --hidden-size 256 --num-attention-heads 4 \\\n"
          "  --seq-length 256 --max-position-embeddings 256 --micro-batch-size 16 \\\n"
          "  --train-iters 500 --lr 2e-3 --data-path corpus_text_document \\\n"
          "  --tokenizer-model tokenizer --save checkpoint --load checkpoint\n"
          "torchrun --no-python --nproc_per_node 4 megalith-pretrain ...\n"
          "\n"
          "--dump-sample-order as the first word prints the order of samples instead (see\n"
          "its --help).\n")
      .environment(thread_variables())
      .environment(
          {{"RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
            "What torchrun tells a rank. OMPI_COMM_WORLD_*, PMI_*, SLURM_*, PADDLE_* and RANK_TABLE_FILE "
            "with RANK_ID are understood, too."}})
      .environment(tokenizer_variables())
      .files({{"SAVE/iter_NNNNNNN/", "A checkpoint: weights, optimizer, options, tokenizer."},
              {"SAVE/latest_checkpointed_iteration.txt", "The iteration that --load SAVE goes on from."}});
  if (!read_options(options, argc, argv)) return 0;
  if (config.checkpoint.use_checkpoint_args)
    if (const auto saved = saved_args(config.checkpoint.load))
      options.adopt(with_own_tokenizer(saved->args, saved->folder), saved->folder, {"Model", "Tokenizer"});
  const LaunchPlan plan =
      plan_launch(launch, config.parallel.nproc, [](const char* name) { return std::getenv(name); });
  config.parallel.processes = plan.world();
  if (plan.world() > 0) config.parallel.nproc = 0;  // it said how many to start
  options.check();
  if (plan.server) return run_server_ranks(*plan.server, "/proc/self/exe", {argv, argv + argc}, stop);
  const int rank = plan.rank ? plan.rank->rank : 0;
  if (launch.log_dir) keep_log(*launch.log_dir, rank);
  if (options.given("distributed-backend") && launch.transport == Transport::kNccl && rank == 0)
    log("--distributed-backend nccl is for GPUs: messages between processes go over gloo");
  const bool saves = !config.checkpoint.save.empty();
  if (!plan.rank) return exit_code_of(pretrain(std::move(config), stop), saves);
  const LaunchedRank launched{.launch = *plan.rank, .logs = rank == 0 || launch.log_dir.has_value()};
  return exit_code_of(pretrain(std::move(config), stop, launched), saves);
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  return megalith::run_app("pretrain", [&] {
    const bool dump = argc > 1 && megalith::option_key(argv[1]) == "--dump-sample-order";
    return dump ? megalith::dump_order(argc - 1, argv + 1) : megalith::run_training(argc, argv);
  });
}
