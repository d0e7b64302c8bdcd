#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/app.h"
#include "apps/pretrain/run_plan.h"
#include "apps/training_app.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/standard_streams.h"
#include "libcore/convert/sources/model_files.h"
#include "libcore/data/samples/sample_order.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/dialects/mindformers/run_file.h"
#include "libcore/dialects/paddle/paddle_config.h"
#include "libcore/dialects/paddle/paddle_run.h"
#include "libcore/launch/launch_plan.h"
#include "libcore/options/cli.h"
#include "libcore/parallel/exchange.h"
#include "libcore/text/tokenizer_files.h"
#include "libcore/train/run/pretrain.h"
#include "libcore/train/run/run_rules.h"
#include "libcore/train/saves/start_point.h"

namespace megalith {
namespace {

/// `--dump-sample-order` as the first word: a separate app within this one.
int dump_order(int argc, char** argv) {
  SampleOrderOptions order;
  Options options("pretrain --dump-sample-order",
                  "Print which token ids each sample of a run holds, without training.");
  options.add("Samples", order);
  if (!parse_options(options, argc, argv)) return 0;
  dump_sample_order(order, std::cout);
  return 0;
}

/// Options that only this program has.
struct Running {
  bool dry = false;

  template <class V>
  void fields(V&& v) {
    v("dry-run", dry,
      "Print the ranks' layout, each one's memory, the pipeline's order and the first samples, and end.");
  }
};

/// Plans if --max-global-batch-size asks for it: the plan then decides what the command line leaves open.
class Planner {
 public:
  Planner(Options& options, PretrainConfig& config, std::vector<std::string> words)
      : options_(options), config_(config), words_(std::move(words)) {}

  PlanTarget& target() { return target_; }
  bool wanted() const { return target_.max_global_batch > 0; }
  /// Without a launcher, --world-size refers to ranks elsewhere, so it is only a question. The variables of a
  /// DLC container are not a launcher: they are set whatever is run.
  bool only_asks(const LaunchPlan& plan) const {
    const auto given = [this](const char* option) { return options_.given(option); };
    const bool container =
        plan.server && given("task-type") && !given("gpus") && !given("nnodes") && !given("hostfile");
    return wanted() && (plan.world() == 0 || container) && config_.parallel.nproc == 0 && given("world-size");
  }
  int answer() const {
    const PlanAnswer plans = plan_alone(words_);
    write_stdout(plans.text);
    return plans.found ? 0 : exit_code(ErrorKind::kUsage);
  }
  /// The Settle (train/run/pretrain.h) of a run with this many ranks in total and on this machine.
  PretrainConfig settle(Communicator* world, const RunRanks& ranks) {
    Json decided;
    if (!world || world->rank() == 0) {
      const RunPlan plan = plan_run(words_, ranks);
      for (const std::string& line : plan.why) log(line);
      decided = plan.options;
    }
    if (world) decided = Json::parse(rank0_value(*world, decided.dump()), "the plan of rank 0");
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

/// The command line of a run, read and checked.
struct Command {
  PretrainConfig config;
  PaddleConfig paddle;
  MindFormersRun mindformers;
  Running running;

  void add_to(Options& options, PlanTarget& target) {
    options.add("Planning", target).add("PaddleNLP's names", paddle);
    options.add("MindFormers", mindformers).add("Running", running);
    options.fates(fates_in(kPretrain)).translate(translate_mindformers);
    options.rule([this](Problems& problems) { check_run(config, problems); });
  }
  /// Including files that are read only under PaddleNLP's names.
  RunFiles files(RunFiles known) const {
    reads_model(known, "--model-name-or-path", paddle.model);
    known.reads("--input-dir", paddle.input_dir);
    return known;
  }
};

void add_notes(Options& options) {
  options
      .epilog(
          "megalith-pretrain --num-layers 4 --hidden-size 256 --num-attention-heads 4 \\\n"
          "  --seq-length 256 --max-position-embeddings 256 --micro-batch-size 16 \\\n"
          "  --train-iters 500 --lr 2e-3 --data-path corpus_text_document \\\n"
          "  --tokenizer-model tokenizer --save checkpoint --load checkpoint\n"
          "torchrun --no-python --nproc_per_node 4 megalith-pretrain ...\n"
          "\n"
          "--dump-sample-order as the first word prints the order of samples instead (see\n"
          "its --help).\n")
      .environment(
          {{"DEVICE_MEMORY_GB", "Memory of a device to plan for, where --device-memory-gb is not given."}})
      .files({{"SAVE/iter_NNNNNNN/", "A checkpoint: weights, optimizer, options, tokenizer."},
              {"SAVE/latest_checkpointed_iteration.txt", "The iteration that --load SAVE resumes from."}});
}

/// The ranks that there will be, before their layout is known.
RunRanks ranks_of(const LaunchPlan& plan, const ParallelConfig& parallel) {
  if (plan.rank) return {plan.rank->world, plan.rank->local_world.value_or(plan.rank->world)};
  const int threads = std::max(1, ParallelConfig::ranks_of(parallel.nproc));
  return {threads, threads};
}

int dry_run(const LaunchPlan& plan, const Planner& planner, PretrainConfig config) {
  if (planner.wanted())
    fail(ErrorKind::kUsage,
         "--dry-run shows a layout that is known; plan first (megalith-autoplan, or --world-size without a "
         "launcher), and give the plan's options in place of --max-global-batch-size");
  if (!plan.rank || plan.rank->rank == 0) describe_run(std::move(config), write_stdout);
  return 0;
}

int run_training(int argc, char** argv) {
  Command command;
  PretrainConfig& config = command.config;
  TrainingApp app(argc, argv);
  Options options("pretrain", "Train a GPT or LLaMA model on indexed datasets.");
  config.add_to(options);
  Planner planner(options, config, {argv + (argc > 0 ? 1 : 0), argv + argc});
  command.add_to(options, planner.target());
  add_notes(options);
  if (!app.read(options)) return 0;
  if (config.checkpoint.use_checkpoint_args)
    if (const auto saved = saved_args(config.checkpoint))
      options.adopt(with_own_tokenizer(saved->args, saved->tokenizer), saved->folder, {"Model", "Tokenizer"});
  const LaunchPlan& plan = app.plan(config.parallel);
  if (planner.only_asks(plan) && !command.running.dry) return planner.answer();
  if (!planner.wanted()) config.train.device_memory = planner.target().memory_gb.value_or(0) * 1e9;
  set_log_console(LogConsole::kStdout);  // as upstream does: `| tee train.log` captures it
  settle_paddle(command.paddle, config, options);
  if (!planner.wanted()) options.check();
  check_files(config, command.files(app.files(options)));
  if (command.running.dry) return dry_run(plan, planner, std::move(config));
  const RunRanks ranks = ranks_of(plan, config.parallel);
  const Settle settle =
      planner.wanted() ? [&](Communicator* world) { return planner.settle(world, ranks); } : Settle();
  const bool by_itself = goes_on_by_itself(command.paddle, config, options);
  const auto lacks = [&](int64_t iteration) {
    return by_itself ? std::string() : options_to_go_on(config.checkpoint, iteration);
  };
  return app.run(options, {"pretrain", config.train, !config.checkpoint.save.empty(), lacks,
                           [&](const StopSignal& stop, const std::optional<LaunchedRank>& rank,
                               const ThreadLog& thread_log) {
                             return pretrain(config, stop, rank, settle, thread_log);
                           }});
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  return megalith::run_app("pretrain", [&] {
    const bool dump = argc > 1 && megalith::option_key(argv[1]) == "--dump-sample-order";
    return dump ? megalith::dump_order(argc - 1, argv + 1) : megalith::run_training(argc, argv);
  });
}
