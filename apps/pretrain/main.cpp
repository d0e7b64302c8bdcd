#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/app.h"
#include "apps/manual_notes.h"
#include "apps/pretrain/run_plan.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/standard_streams.h"
#include "libcore/config/cli.h"
#include "libcore/config/mindformers.h"
#include "libcore/config/paddle_config.h"
#include "libcore/config/tokenizer_model.h"
#include "libcore/data/samples/sample_order.h"
#include "libcore/io/file.h"
#include "libcore/io/stop_signal.h"
#include "libcore/launch/launch_plan.h"
#include "libcore/plan/machine.h"
#include "libcore/train/data/paddle_run.h"
#include "libcore/train/pretrain.h"
#include "libcore/train/run_rules.h"
#include "libcore/train/start_point.h"

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

/// A rank's lines to workerlog.N of `folder`, which is made.
LogSink worker_log(const std::string& folder, int rank) {
  make_directories(folder);
  const std::string path = concat(folder, "/workerlog.", rank);
  const auto file = std::make_shared<std::ofstream>(path, std::ios::trunc);
  if (!*file) fail(ErrorKind::kIo, path, ": cannot be written; give another --log-dir");
  return [file](const std::string& line) { *file << line << std::endl; };
}

/// This process's lines go to workerlog.N of `folder`, those of rank 0 to stdout, too.
void keep_log(const std::string& folder, int rank) {
  make_directories(folder);
  add_log_file({.path = concat(folder, "/workerlog.", rank), .append = false, .times = false});
  if (rank > 0) set_log_console(LogConsole::kNone);
}

/// What only this program asks.
struct Running {
  bool dry = false;

  template <class V>
  void fields(V&& v) {
    v("dry-run", dry,
      "Print the ranks' layout, each one's memory, the pipeline's order and the first samples, and end.");
  }
};

std::string after_stop(const PretrainResult& result, bool saves) {
  if (result.saved) return "saved; run the same command to go on";
  return saves ? "no step was done; run the same command again" : "nothing saved: there is no --save";
}

int exit_code_of(const PretrainResult& result, bool saves) {
  if (result.stopped_by.empty()) return 0;
  tell("pretrain: stopped by ", result.stopped_by, "; ", after_stop(result, saves));
  return kTryAgain;
}

/// Plans where --max-global-batch-size asks for it: what the command line leaves open follows from the plan.
class Planner {
 public:
  Planner(Options& options, PretrainConfig& config, std::vector<std::string> words)
      : options_(options), config_(config), words_(std::move(words)) {}

  PlanTarget& target() { return target_; }
  bool wanted() const { return target_.max_global_batch > 0; }
  /// Without a launcher --world-size tells of ranks that are somewhere else: then it is a question only.
  bool only_asks(const LaunchPlan& plan) const {
    return wanted() && plan.world() == 0 && config_.parallel.nproc == 0 && options_.given("world-size");
  }
  int answer() const {
    const PlanAnswer plans = plan_alone(words_);
    write_stdout(plans.text);
    return plans.found ? 0 : exit_code(ErrorKind::kUsage);
  }
  /// Settle (train/pretrain.h) of a run of so many ranks, so many of them on this machine.
  PretrainConfig settle(Communicator* world, const RunRanks& ranks) {
    Json decided;
    if (!world || world->rank() == 0) {
      const RunPlan plan = plan_run(words_, ranks);
      for (const std::string& line : plan.why) log(line);
      decided = plan.options;
    }
    if (world) decided = Json::parse(world->exchange(decided.dump())[0], "the plan of rank 0");
    std::erase_if(decided.as_object(),
                  [&](const auto& member) { return options_.given(option_key(member.first)); });
    options_.adopt(decided, "plan", {"Parallelism", "Training"});
    options_.check();
    return config_;
  }

 private:
  Options& options_;
  PretrainConfig& config_;
  std::vector<std::string> words_;
  PlanTarget target_;
};

int run_training(int argc, char** argv) {
  const StopSignal stop;
  PretrainConfig config;
  LaunchConfig launch;
  PaddleConfig paddle;
  MindFormersRun mindformers;
  Running running;
  Options options("pretrain", "Train a GPT or LLaMA model on indexed datasets.");
  config.add_to(options);
  Planner planner(options, config, {argv + (argc > 0 ? 1 : 0), argv + argc});
  options.add("Processes", launch).add("Planning", planner.target());
  options.add("PaddleNLP's names", paddle).add("MindFormers", mindformers).add("Running", running);
  options.translate(translate_mindformers);
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
  settle_paddle(paddle, config, options);
  const LaunchPlan plan =
      plan_launch(launch, config.parallel.nproc, [](const char* name) { return std::getenv(name); });
  if (planner.only_asks(plan)) return planner.answer();
  set_log_console(LogConsole::kStdout);  // as upstream: `| tee train.log` captures it
  const int threads = config.parallel.nproc == ParallelConfig::kAutoRanks
                          ? usable_cpus()
                          : std::max(1, config.parallel.nproc);
  config.parallel.processes = plan.world();
  if (plan.world() > 0) config.parallel.nproc = 0;  // it said how many to start
  if (!planner.wanted()) options.check();
  check_files(config);
  if (running.dry) {
    if (planner.wanted())
      fail(ErrorKind::kUsage,
           "--dry-run shows a layout that is known; plan first (megalith-autoplan, or --world-size without a "
           "launcher), and give the plan's options in place of --max-global-batch-size");
    if (!plan.rank || plan.rank->rank == 0) write_stdout(describe_run(std::move(config)));
    return 0;
  }
  if (plan.server) return run_server_ranks(*plan.server, "/proc/self/exe", {argv, argv + argc}, stop);
  const int rank = plan.rank ? plan.rank->rank : 0;
  if (launch.log_dir) keep_log(*launch.log_dir, rank);
  if (!config.train.log_file.empty() && rank == 0) add_log_file({.path = config.train.log_file});
  if (options.given("distributed-backend") && launch.transport == Transport::kNccl && rank == 0)
    log("--distributed-backend nccl is for GPUs: messages between processes go over gloo");
  if (config.train.log_throughput && rank == 0) {
    const Accelerator machine = measure_this_machine();
    const bool half = config.train.bf16 || config.train.fp16;
    config.train.machine_flops = half ? machine.half_flops : machine.float_flops;
  }
  const bool saves = !config.checkpoint.save.empty();
  const RunRanks ranks = plan.rank
                             ? RunRanks{plan.rank->world, plan.rank->local_world.value_or(plan.rank->world)}
                             : RunRanks{threads, threads};
  const Settle settle =
      planner.wanted() ? [&](Communicator* world) { return planner.settle(world, ranks); } : Settle();
  std::optional<LaunchedRank> launched;
  if (plan.rank) launched = {.launch = *plan.rank, .logs = rank == 0 || launch.log_dir.has_value()};
  ThreadLog thread_log;
  if (!plan.rank && launch.log_dir)
    thread_log = [&](int thread) { return worker_log(*launch.log_dir, thread); };
  return exit_code_of(pretrain(config, stop, launched, settle, thread_log), saves);
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  return megalith::run_app("pretrain", [&] {
    const bool dump = argc > 1 && megalith::option_key(argv[1]) == "--dump-sample-order";
    return dump ? megalith::dump_order(argc - 1, argv + 1) : megalith::run_training(argc, argv);
  });
}
