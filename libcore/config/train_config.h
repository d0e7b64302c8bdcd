#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/batch_schedule.h"
#include "libcore/options/fields.h"

namespace megalith {

struct ModelConfig;
struct ParallelConfig;

/// kWsd: warm-up, a stable phase at the peak, and an annealing phase of its own length and style.
enum class LrDecay { kConstant, kLinear, kCosine, kWsd };
inline std::vector<EnumName<LrDecay>> enum_names(LrDecay) {
  return {{"constant", LrDecay::kConstant},
          {"linear", LrDecay::kLinear},
          {"cosine", LrDecay::kCosine},
          {"WSD", LrDecay::kWsd}};
}

/// How the rate falls in the annealing phase of LrDecay::kWsd.
enum class WsdDecay { kExponential, kLinear, kCosine, kMinusSqrt };
inline std::vector<EnumName<WsdDecay>> enum_names(WsdDecay) {
  return {{"exponential", WsdDecay::kExponential},
          {"linear", WsdDecay::kLinear},
          {"cosine", WsdDecay::kCosine},
          {"minus_sqrt", WsdDecay::kMinusSqrt}};
}

/// The program whose log lines a run prints in addition to Megatron's.
enum class LogStyle { kMegatron, kDdpTutorial, kPaddle };
inline std::vector<EnumName<LogStyle>> enum_names(LogStyle) {
  return {{"megatron", LogStyle::kMegatron},
          {"ddp-tutorial", LogStyle::kDdpTutorial},
          {"paddle", LogStyle::kPaddle}};
}

/// The type in which Adam's first moment is kept.
enum class MomentType { kFp32, kBf16 };
inline std::vector<EnumName<MomentType>> enum_names(MomentType) {
  return {{"fp32", MomentType::kFp32}, {"bf16", MomentType::kBf16}};
}

enum class Recompute { kNone, kSelective, kFull };
inline std::vector<EnumName<Recompute>> enum_names(Recompute) {
  return {{"none", Recompute::kNone}, {"selective", Recompute::kSelective}, {"full", Recompute::kFull}};
}

/// A global batch that grows, as in Megatron's RampupBatchsizeNumMicroBatchesCalculator: while the first
/// `samples` samples are read, it grows from `start` in equal steps of `increment`; then the batch is full.
struct BatchRamp {
  int64_t start = 0, increment = 0, samples = 0;
  bool operator==(const BatchRamp&) const = default;
  /// The batch after `consumed` samples; `whole` is the full batch. whole - start must be a multiple of
  /// increment.
  int64_t at(int64_t consumed, int64_t whole) const;
};

/// The training loop: batch, schedule, optimizer, reports. Names and defaults are Megatron's.
struct TrainConfig {
  int micro_batch = 0;   // samples of one forward pass, per rank
  int global_batch = 0;  // samples of one optimizer step; derived: micro_batch * data-parallel size
  std::optional<int> accumulation;        // micro-batches per step on one rank, instead of global_batch
  std::optional<int64_t> iters, samples;  // one of iters, samples and epochs is given; iters is derived
  std::optional<double> epochs;  // passes through the training data; set_epoch_steps() converts them to iters
  std::vector<std::string> rampup;  // three numbers: start, increment, samples; see ramp()
  std::string batch_schedule;       // "0:768 250B:1536", in place of global_batch; see batch_levels()
  int64_t tokens_of_a_sample = 0;   // in which batch_schedule counts, not an option; 0: it counts samples
  double lr = 0, min_lr = 0;
  LrDecay decay = LrDecay::kLinear;
  std::optional<int64_t> decay_iters;  // derived: iters
  int64_t warmup_iters = 0;
  double warmup_init = 0;  // learning rate of the first step of the warm-up
  /// The length of the decay if the run is counted in samples; derived: samples.
  std::optional<int64_t> decay_samples;
  WsdDecay wsd_decay = WsdDecay::kExponential;
  std::optional<int64_t> wsd_iters, wsd_samples;  // length of WSD's annealing phase; one of them is given
  int64_t warmup_samples = 0;                     // length of the warm-up if the run is counted in samples
  std::optional<double> warmup_fraction;  // length of the warm-up as a share of decay_iters or decay_samples
  double weight_decay = 0.01, beta1 = 0.9, beta2 = 0.999, adam_eps = 1e-8;
  MomentType first_moments = MomentType::kFp32;
  bool decay_all = false;  // whether weight decay applies to norms and biases, too
  double clip_grad = 1.0;  // 0: off
  bool clip_after_warmup = false;
  int64_t seed = 1234;
  int64_t log_interval = 100, eval_interval = 1000, eval_iters = 100;
  bool full_validation = false;      // an evaluation reads each sample of the validation set once
  bool multiple_validation = false;  // the datasets of the validation set are evaluated one by one
  std::vector<std::string> validation_names = {};  // of these datasets; empty: their numbers from 0
  bool from_zero = false;   // evaluations and saves are due at steps that are counted from 0
  bool epoch_ends = false;  // evaluations and saves are also due at the end of each epoch
  std::optional<int64_t> exit_interval, exit_minutes;
  bool exit_at_signal = true;
  bool eval_only = false;
  std::vector<std::string> eval_tasks = {}, eval_fewshot_data = {};  // as megalith-eval takes them
  int eval_fewshots = 0;
  int64_t eval_limit = 0;
  std::string tensorboard, log_json, report, log_file;
  bool log_throughput = false;
  double machine_flops = 0;  // FLOP/s of this machine, measured for log_throughput; not an option. 0: unknown
  double device_memory = 0;  // bytes that a rank may use on its device; not an option. 0: no limit
  std::string trace;
  int64_t trace_begin = 10, trace_end = 12;  // numbers of completed steps at which the trace begins and ends
  LogStyle log_style = LogStyle::kMegatron;
  bool log_straggler = false;
  std::string sample_prompt;
  int sample_tokens = 50;
  bool fp16 = false, bf16 = false;
  std::optional<double> loss_scale;  // a constant scale; 0: a dynamic one, see fixed_loss_scale()
  double initial_loss_scale = 4294967296, min_loss_scale = 1;  // for a dynamic scale, with fp16
  int loss_scale_window = 1000, hysteresis = 2;
  std::string optimizer = "adam";
  bool recompute_all = false;          // PaddleNLP's --recompute
  bool recompute_activations = false;  // Megatron's short form of --recompute-granularity selective
  Recompute recompute = Recompute::kNone;
  std::optional<std::string> recompute_method;
  std::optional<int> recompute_layers;
  std::string device = "cpu";
  std::string cuda_graphs = "local";
  int threads = 0;  // threads of the CPU's ops; 0: all that the process may use

  template <class V>
  void fields(V&& v) {
    step_fields(v);
    run_fields(v);
    device_fields(v);
  }

 private:
  /// The options of a step: its batch, rate and update, and how many steps there are.
  template <class V>
  void step_fields(V&& v) {
    v("micro-batch-size", micro_batch, "Samples of one forward pass on one rank.", between(1, 1 << 20),
      alias({"per-device-train-batch-size"}));
    v("global-batch-size", global_batch, "Samples of one optimizer step over all ranks.", at_least(0),
      default_text("micro-batch-size * data-parallel-size"));
    v("gradient-accumulation-steps", accumulation,
      "Micro-batches of one step on one rank, in place of --global-batch-size.", between(1, 1 << 20));
    v("train-iters", iters, "Number of optimizer steps.", at_least(0), alias({"max-steps"}));
    v("train-samples", samples, "Number of samples, in place of --train-iters.", at_least(1));
    v("rampup-batch-size", rampup,
      "Start with a global batch of START samples and add INCREMENT, in equal steps, until SAMPLES are read.",
      metavar("START INCREMENT SAMPLES"), last_counts());
    v("step-batch-size-schedule", batch_schedule,
      "The global batch by the tokens that are read, in place of --global-batch-size: \"0:768 250B:1536\" is "
      "768 samples, and 1536 from 250e9 tokens on. Needs --train-samples.",
      metavar("SCHEDULE"));
    v("num-epochs", epochs,
      "Passes over the training data, in place of --train-iters; a fraction is that share of its steps.",
      positive(), alias({"num-train-epochs", "epochs"}));
    v("lr", lr, "Peak learning rate.", positive(), alias({"learning-rate"}));
    v("min-lr", min_lr, "Learning rate at the end of the decay.", at_least(0), alias({"min-learning-rate"}));
    v("lr-decay-style", decay, "How the learning rate decays after warm-up.", alias({"lr-scheduler-type"}));
    v("lr-decay-iters", decay_iters, "Step at which --min-lr is reached.", at_least(1),
      default_text("train-iters"));
    v("lr-warmup-iters", warmup_iters, "Steps of linear warm-up.", at_least(0), alias({"warmup-steps"}));
    v("lr-decay-samples", decay_samples, "Samples at which --min-lr is reached, with --train-samples.",
      at_least(1), default_text("train-samples"));
    v("lr-wsd-decay-style", wsd_decay, "How the rate falls in the annealing phase of --lr-decay-style WSD.");
    v("lr-wsd-decay-iters", wsd_iters, "Steps of that phase, which ends at --lr-decay-iters.", at_least(1));
    v("lr-wsd-decay-samples", wsd_samples, "Samples of that phase, which ends at --lr-decay-samples.",
      at_least(1));
    v("lr-warmup-samples", warmup_samples, "Samples of linear warm-up, with --train-samples.", at_least(0));
    v("lr-warmup-fraction", warmup_fraction,
      "Warm-up as a fraction of the steps, or samples, until --min-lr is reached.", between(0, 1),
      alias({"warmup-ratio"}));
    v("lr-warmup-init", warmup_init, "Learning rate at the start of the warm-up.", at_least(0));
    v("weight-decay", weight_decay, "Decoupled weight decay of AdamW; norms and biases are exempt.",
      at_least(0));
    v("weight-decay-all", decay_all,
      "Also apply --weight-decay to norms and biases, as torch's AdamW does to all parameters.");
    v("adam-beta1", beta1, "Decay of the first moment.", between(0, 1));
    v("adam-beta2", beta2, "Decay of the second moment.", between(0, 1));
    v("exp-avg-dtype", first_moments,
      "Type of Adam's first moment between steps; bf16 saves two bytes per parameter, and rounds the moment "
      "to nearest after each step.");
    v("adam-eps", adam_eps, "Added to the square root of the second moment.", positive());
    v("clip-grad", clip_grad, "Maximum norm of the gradient; 0: not clipped.", at_least(0),
      alias({"max-grad-norm"}));
    v("clip-grad-after-warmup", clip_after_warmup, "Clip the gradient only after the warm-up.");
  }
  /// The options of what a run does between its steps, and of what it writes.
  template <class V>
  void run_fields(V&& v) {
    v("seed", seed, "The seed of initial weights, sample order and dropout.", at_least(0));
    v("log-interval", log_interval, "Steps between two log lines.", at_least(1), alias({"logging-steps"}));
    v("eval-interval", eval_interval, "Steps between two evaluations.", at_least(1),
      alias({"eval-steps", "eval-freq"}));
    v("count-steps-from-zero", from_zero,
      "Evaluate and save after the steps 0, N, 2N, … of a run whose first step is 0, in place of N, 2N, ….");
    v("at-epoch-ends", epoch_ends,
      "Also evaluate, write the text of --sample-prompt, and save at the end of each epoch.");
    v("eval-iters", eval_iters, "Global batches of one evaluation; 0: none (megalith-finetune: all records).",
      at_least(0), alias({"eval-iter"}));
    v("full-validation", full_validation,
      "Read the whole validation set at each evaluation, once, in place of --eval-iters batches.");
    v("multiple-validation-sets", multiple_validation,
      "Evaluate each dataset of --valid-data-path by itself, with --full-validation.");
    v("validation-set-names", validation_names, "Names of these datasets in the log, in place of 0, 1, ….",
      metavar("NAME"));
    v("eval-tasks", eval_tasks,
      "Tasks for each evaluation, as megalith-eval's --tasks: NAME=FILE, or FILE.jsonl, with commas "
      "between. They take memory of their own, which a run counts before it begins.",
      metavar("TASKS"));
    v("eval-num-fewshot", eval_fewshots, "Answered examples before each item of --eval-tasks.", at_least(0));
    v("eval-fewshot-data", eval_fewshot_data,
      "Where these examples are drawn from, NAME=FILE with commas between; else from the task's other items.",
      metavar("TASKS"));
    v("eval-limit", eval_limit, "Read only the first items of each of --eval-tasks; 0: all.", at_least(0));
    v("exit-interval", exit_interval, "Stop when the step is a multiple of this.", at_least(1));
    v("exit-duration-in-mins", exit_minutes, "Stop after this many minutes.", at_least(0));
    v("exit-signal-handler", exit_at_signal,
      "At SIGTERM finish the step, save and stop; always on, for SIGUSR1, SIGHUP and Ctrl-C too.",
      unlisted());
    v("eval-only", eval_only,
      "Evaluate what --load names on the validation and test data, and train nothing.",
      alias({"skip-train"}));
    v("log-file", log_file, "Also append each line of the log there, with the time before it.",
      metavar("FILE"));
    v("log-throughput", log_throughput,
      "Log TFLOP/s of each rank as Megatron does, and their share of this machine's measured peak (MFU).");
    v("log-style", log_style,
      "Lines of another tool beside Megatron's; ddp-tutorial: one of every rank for every batch; paddle: "
      "PaddleNLP's loss and eval_loss.");
    v("log-straggler", log_straggler,
      "Log with each line how long the ranks' own forward and backward passes took, and which rank took "
      "longest.");
    v("tensorboard-dir", tensorboard, "Write TensorBoard event files there.", metavar("DIR"));
    v("log-json", log_json, "Write each step's figures there, one JSON object a line.", metavar("FILE"));
    v("report", report, "Write an HTML page with the loss curve there.", metavar("FILE"));
    v("trace", trace,
      "Write a Chrome trace there: what each rank did when, in the steps between --profile-step-start and "
      "--profile-step-end; for a plan, its pipeline's timeline.",
      metavar("FILE"));
    v("profile-step-start", trace_begin, "Steps done when --trace begins.", at_least(0));
    v("profile-step-end", trace_end, "Steps done when --trace ends.", at_least(1));
    v("sample-prompt", sample_prompt, "Continue this text at each evaluation and log it.", metavar("TEXT"));
    v("sample-tokens", sample_tokens, "Tokens of that continuation.", at_least(1));
  }
  /// The options of how a step is computed.
  template <class V>
  void device_fields(V&& v) {
    v("fp16", fp16, "Train in 16-bit floating point with loss scaling.");
    v("loss-scale", loss_scale, "Fixed loss scale of --fp16 or --bf16; 0: a dynamic one with --fp16.",
      at_least(0), default_text("dynamic with --fp16, else 1"));
    v("initial-loss-scale", initial_loss_scale, "First dynamic loss scale of --fp16.", positive(),
      alias({"scale-loss"}));
    v("min-loss-scale", min_loss_scale, "Minimum dynamic loss scale of --fp16.", positive());
    v("loss-scale-window", loss_scale_window,
      "Steps in a row without overflow after which --fp16 doubles the loss scale.", at_least(1));
    v("hysteresis", hysteresis,
      "Overflows, counted since the loss scale was last doubled, after which --fp16 begins to halve it.",
      at_least(1));
    v("optimizer", optimizer, "Only AdamW is supported.", one_of({"adam"}), unlisted());
    v("bf16", bf16, "Train in bfloat16.");
    v("recompute-activations", recompute_activations, "Same as --recompute-granularity selective.");
    v("recompute", recompute_all, "Same as --recompute-granularity full --recompute-method uniform.",
      alias({"checkpoint-activations"}), unlisted());
    v("recompute-granularity", recompute, "What is recomputed in the backward pass to save memory.");
    v("recompute-method", recompute_method, "Which layers --recompute-granularity full takes.",
      alias({"activations-checkpoint-method"}), one_of({"uniform", "block"}));
    v("recompute-num-layers", recompute_layers, "How many layers --recompute-method takes.", at_least(1),
      alias({"checkpoint-num-layers", "activations-checkpoint-num-layers"}));
    v("device", device,
      "Where the model is trained; cuda: the first device; gpu: that device, or the CPU if there is none.",
      one_of({"cpu", "cuda", "gpu"}));
    v("cuda-graph-impl", cuda_graphs,
      "On a GPU: local: passes of micro-batches that wait for no work beside them are replayed as CUDA "
      "graphs; transformer_engine: the same; none: each kernel is launched.",
      one_of({"none", "local", "transformer_engine"}));
    v("threads", threads, "Threads of the CPU kernels.", at_least(0),
      default_text("all cores that the process may use"));
  }

 public:
  void finish();
  void finish(const ParallelConfig&);  // also sets what depends on the number of ranks
  void validate(Problems&) const;
  void validate(const ParallelConfig&, Problems&) const;  // whether the ranks can divide the batch

  /// Whether --loss-scale sets a constant scale; 0 means a dynamic one, as in Megatron.
  bool fixed_loss_scale() const { return loss_scale && *loss_scale > 0; }
  /// The number of samples after which the warm-up ends, and after which the decay ends. A warm-up given as a
  /// fraction is not rounded, as in Megatron.
  double warmup_in_samples() const;
  /// Whether --min-lr is reached at the run's end. The warm-up may then be longer than the run: the rate
  /// rises until the run ends.
  bool decays_with_the_run() const;
  int64_t decay_in_samples() const;
  /// The number of samples in the annealing phase of LrDecay::kWsd; 0 for another decay.
  int64_t wsd_in_samples() const;

  /// The ramp of --rampup-batch-size; nothing if the batch is constant. Valid after validate().
  std::optional<BatchRamp> ramp() const;
  /// The levels of --step-batch-size-schedule; none if it is not given. Valid after validate().
  std::vector<BatchLevel> batch_levels() const;
  /// The global batch of the step that begins after `consumed` samples.
  int64_t batch_at(int64_t consumed) const;
  /// The number of samples in the next `steps` steps after `consumed` samples.
  int64_t samples_of_steps(int64_t steps, int64_t consumed) const;
  /// Applies --num-epochs once the data are known: sets the number of steps of the run, and that of the
  /// decay if no option gave it. kUsage when an epoch has no full step or the schedule does not fit.
  void set_epoch_steps(int64_t steps_of_an_epoch);
};

/// Steps of `epochs` passes through data of `steps_of_an_epoch` steps: rounded up, and at least one.
int64_t steps_of_epochs(double epochs, int64_t steps_of_an_epoch);

extern template std::vector<Field> fields_of<TrainConfig>(TrainConfig&);

}  // namespace megalith
