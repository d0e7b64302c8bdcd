#include <algorithm>
#include <array>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "apps/app.h"
#include "apps/pretrain/run_plan.h"
#include "apps/training_app.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/config/precedence.h"
#include "libcore/convert/sources/model_files.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/data/samples/sample_order.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/dialects/megatron/wandb.h"
#include "libcore/dialects/mindformers/run_file.h"
#include "libcore/dialects/paddle/paddle_config.h"
#include "libcore/dialects/paddle/paddle_run.h"
#include "libcore/io/streams/standard_streams.h"
#include "libcore/launch/launch_plan.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/options/cli.h"
#include "libcore/parallel/exchange.h"
#include "libcore/text/tokenizer_files.h"
#include "libcore/train/run/pretrain.h"
#include "libcore/train/run/run_rules.h"
#include "libcore/train/saves/start_point.h"

namespace megalith {
namespace {

/// Runs `megalith-pretrain --dump-sample-order …`, a separate app inside this program.
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

/// What a command line asks the program to do.
enum class Task {
  kAnswer,      // print the best plans for ranks on other machines
  kLayout,      // print what the ranks would do (--dry-run)
  kRun,         // train
  kPlannedRun,  // train with the sizes that the planner finds (--max-global-batch-size)
};

void add_notes(Options& options) {
  options
      .epilog(std::string("megalith-pretrain --num-layers 4 --hidden-size 256 --num-attention-heads 4 \\\n"
                          "  --seq-length 256 --max-position-embeddings 256 --micro-batch-size 16 \\\n"
                          "  --train-iters 500 --lr 2e-3 --data-path corpus_text_document \\\n"
                          "  --tokenizer-model tokenizer --save checkpoint --load checkpoint\n"
                          "torchrun --no-python --nproc_per_node 4 megalith-pretrain ...\n"
                          "\n"
                          "--dump-sample-order as the first word prints the order of samples instead (see\n"
                          "its --help).\n"
                          "\n") +
              kWhereItTrains)
      .environment(
          {{"DEVICE_MEMORY_GB", "Memory of a device to plan for, where --device-memory-gb is not given."}})
      .files({{"SAVE/iter_NNNNNNN/", "A checkpoint: weights, optimizer, options, tokenizer."},
              {"SAVE/latest_checkpointed_iteration.txt", "The iteration that --load SAVE resumes from."}});
}

/// The groups of which a question uses some options, and passes the others on to the run that it plans.
const std::vector<std::string> kAlsoGiven = {"Training", "Data", "Checkpoints"};

/// The number of ranks that the run will have. Their layout need not be known yet.
RunRanks ranks_of(const LaunchPlan& plan, const ParallelConfig& parallel) {
  if (plan.rank) return {plan.rank->world, plan.rank->local_world.value_or(plan.rank->world)};
  const int threads = std::max(1, ParallelConfig::ranks_of(parallel.nproc));
  return {threads, threads};
}

/// One command of megalith-pretrain. Its options are read, then settled, then checked; then run() carries it
/// out.
class Training {
 public:
  Training(int argc, char** argv)
      : app_(argc, argv), options_("pretrain", "Train a GPT or LLaMA model on texts or indexed datasets.") {
    config_.add_to(options_);
    options_.fates([] { return fates_in(kPretrain); }).translate(translate_mindformers);
    plan_.add_to(options_, [this] { return only_asks(); });
    options_.add("PaddleNLP's names", paddle_).add("MindFormers", mindformers_).add("Running", running_);
    options_.derive([this] {
      if (paddle_.model.empty() && paddle_.output_dir.empty()) return;
      settle_paddle_training(config_.train, options_);
      take_paddle_loss_scale(config_.train, options_);
    });
    options_.rule([this](Problems& problems) { check_run(config_, problems); });
    explain_wandb(options_);
    add_notes(options_);
  }

  /// Reads the command line. Returns false if --help or a similar option was printed.
  bool read() {
    if (!app_.read(options_)) return false;
    launch_ = app_.plan(config_.parallel);
    plan_for_global_batch();
    task_ = task();
    return true;
  }

  /// Completes the options from the model or checkpoint that they name. In a planned run, only the planned
  /// sizes are then missing: settle_plan() adds them once the ranks are connected. A question needs no data
  /// and no weights.
  void settle() {
    if (!only_asks()) {
      set_log_console(LogConsole::kStdout);  // like upstream's log, for `| tee train.log`
      config_.train.device = resolved_device(config_.train.device);
    }  // the stdout of a question is its answer, which no device of this machine changes
    if (!planned()) config_.train.device_memory = plan_.options.memory_gb.value_or(0) * 1e9;
    settle_paddle_start(paddle_, config_, options_);
    take_step(config_.checkpoint);
    if (config_.checkpoint.use_checkpoint_args || only_evaluates())
      if (const auto saved = saved_args(config_.checkpoint))
        options_.adopt(with_own_tokenizer(saved->args, saved->tokenizer), saved->folder,
                       {"Model", "Tokenizer"});
    if (only_asks())
      settle_question();
    else
      settle_paddle(paddle_, config_, options_);
  }

  /// Checks the options. For a planned run, checks only the options that the plan depends on: the others
  /// depend on the plan. For a question, which needs no others, checks those of the others that are given.
  void check() {
    options_.check(planned() || only_asks() ? planned_groups() : std::vector<std::string>(),
                   only_asks() ? kAlsoGiven : std::vector<std::string>());
    if (planned() || only_asks()) plan_.take(options_);
    if (only_asks()) return options_.tell_ignored();
    RunFiles files = app_.files(options_);
    reads_model(files, "--model-name-or-path", paddle_.model);
    files.reads("--input-dir", paddle_.input_dir);
    check_files(config_, files);
    if (planned() && running_.dry)
      fail(ErrorKind::kUsage,
           "--dry-run shows a layout that is known; plan first (megalith-autoplan, or --world-size without a "
           "launcher), and give the plan's options in place of --max-global-batch-size");
  }

  int run() {
    if (only_asks()) return answer();
    if (task_ == Task::kLayout) return describe();
    const Settle settle = planned() ? [this](Communicator* world) { return settle_plan(world); } : Settle();
    const bool by_itself = resumes_by_itself(paddle_, config_, options_);
    const auto to_resume = [&](int64_t iteration) {
      return by_itself ? OptionsToResume() : options_to_resume(config_.checkpoint, iteration);
    };
    return app_.run(options_, {"pretrain", config_.train, config_.checkpoint, to_resume,
                               [&](const StopSignal& stop, const std::optional<LaunchedRank>& rank,
                                   const ThreadLog& thread_log) {
                                 return pretrain(config_, stop, rank, settle, thread_log);
                               }});
  }

 private:
  Task task() const {
    if (plan_.options.max_global_batch <= 0) return running_.dry ? Task::kLayout : Task::kRun;
    return ranks_are_elsewhere() && !running_.dry ? Task::kAnswer : Task::kPlannedRun;
  }
  /// As in DLC, a global batch alone asks for a plan: without a micro-batch, and without any parallel size.
  void plan_for_global_batch() {
    constexpr std::array kSizes = {
        "micro-batch-size",           "gradient-accumulation-steps",  "rampup-batch-size",
        "tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size",
        "data-parallel-size",         "max-global-batch-size",        "use-checkpoint-args"};
    const bool alone = std::none_of(kSizes.begin(), kSizes.end(),
                                    [this](const char* option) { return options_.given(option); });
    if (alone && options_.given("global-batch-size") && !running_.dry && !config_.train.eval_only)
      plan_.options.max_global_batch = config_.train.global_batch;
  }
  bool planned() const { return task_ == Task::kPlannedRun; }
  bool only_asks() const { return task_ == Task::kAnswer; }
  /// Whether the run evaluates a model whose shape is not given, so that it is that of --load.
  bool only_evaluates() const { return config_.train.eval_only && !options_.given("num-layers"); }
  /// Whether --world-size refers to ranks on other machines: it does if no launcher started this process. The
  /// variables of a DLC container do not count as a launcher, since the container always sets them.
  bool ranks_are_elsewhere() const {
    const auto given = [this](const char* option) { return options_.given(option); };
    const bool container =
        launch_.server && given("task-type") && !given("gpus") && !given("nnodes") && !given("hostfile");
    return (launch_.world() == 0 || container) && config_.parallel.nproc == 0 && given("world-size");
  }
  void settle_question() {
    if (!paddle_.model.empty())
      options_.adopt(to_json(shape_of_model(paddle_.model)), paddle_.model, {"Model"});
    set_aside_contradicted(config_.train, options_);
  }
  int answer() const {
    const PlanAnswer plans = answer_question(settled());
    write_stdout(plans.text);
    return plans.found ? 0 : exit_code(ErrorKind::kUsage);
  }
  SettledRun settled() const { return {config_, plan_, paddle_, options_}; }
  /// Implements Settle of train/run/pretrain.h: rank 0 plans and sends the result to the other ranks. Options
  /// that were given keep their values.
  PretrainConfig settle_plan(Communicator* world) {
    RunPlan plan;
    if (!world || world->rank() == 0) {
      plan = plan_run(settled(), ranks_of(launch_, config_.parallel));
      for (const std::string& line : plan.why) log(line);
    }
    if (world) plan.decided = rank0_value(*world, plan.decided);
    std::erase_if(plan.decided, [this](const LaunchOption& option) { return options_.given(option.name); });
    options_.adopt(as_members(plan.decided), "plan", {"Parallelism", "Training"});
    options_.check();
    return config_;
  }
  int describe() const {
    if (!launch_.rank || launch_.rank->rank == 0) describe_run(config_, write_stdout);
    return 0;
  }

  TrainingApp app_;
  Options options_;
  PretrainConfig config_;
  PlanSettings plan_;
  PaddleConfig paddle_;
  MindFormersRun mindformers_;
  Running running_;
  LaunchPlan launch_;
  Task task_ = Task::kRun;
};

int run_training(int argc, char** argv) {
  Training training(argc, argv);
  if (!training.read()) return 0;
  training.settle();
  training.check();
  return training.run();
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  return megalith::run_training_app("pretrain", [&] {
    const bool dump = argc > 1 && megalith::option_key(argv[1]) == "--dump-sample-order";
    return dump ? megalith::dump_order(argc - 1, argv + 1) : megalith::run_training(argc, argv);
  });
}
