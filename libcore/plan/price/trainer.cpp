#include "libcore/plan/price/trainer.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/finetune/lora.h"
#include "libcore/plan/price/code_base.h"
#include "libcore/plan/price/rules.h"
#include "libcore/train/devices/trained_where.h"
#include "libcore/train/run/run_rules.h"
#include "libcore/train/step/layout.h"
#include "libcore/train/step/memory.h"
#include "libcore/train/step/memory_limits.h"

namespace megalith {
namespace {

/// Rows of the head's logits in memory at one time: the number that model/head.h measured for GPT-2 in bf16.
/// For other vocabularies it is a belief (layer_price.cpp), since the trainer limits the bytes of a block,
/// not its rows.
constexpr int kHeadRows = 1024;

/// The first feature of the plan for which the trainer has no option; empty: none.
std::string without_option(const PlanProblem& p, const Candidate& c) {
  if (std::string shape = beyond_our_trainer(p.model); !shape.empty()) return shape;
  if (p.precision != Precision::kFloat32 && p.precision != Precision::kHalf) return "8 and 4 bits";
  if (p.half() && p.software.gradient_bytes < 4) return "gradients in 16 bits";
  if (c.sharding == Sharding::kParameters) return "ZeRO-3";
  if (c.recompute == Recomputed::kNormAct || c.recompute == Recomputed::kProducts)
    return "this kind of recomputation";
  if (c.chunks > 1 && p.model.layers % (c.pipeline * c.chunks) != 0) return "uneven interleaved pipelines";
  return {};
}

/// The most layers of a stage whose memory is counted: parameter by parameter, for each plan that is listed.
constexpr int kMostCounted = 1024;  // for which a search takes some three seconds

/// The CUDA backend is compiled for Ampere and later devices.
constexpr int kAmpere = 80;

DeviceMethod method_of(const PlannedTuning& tuning) {
  if (!tuning.finetunes) return DeviceMethod::kPretrain;
  if (!tuning.adapts()) return DeviceMethod::kFull;
  return tuning.eight_bits ? DeviceMethod::kEightBitLora : DeviceMethod::kLora;
}

DeviceRun kind_of(const PlanProblem& p) {
  const Accelerator& device = p.machine.device;
  return {.device = device.multiprocessors == 0            ? "cpu"
                    : device.compute_capability >= kAmpere ? "cuda"
                                                           : device.name,
          .ranks = p.machine.world > 1 ? DeviceRanks::kProcesses : DeviceRanks::kOne,
          .method = method_of(p.tuning)};
}

MemoryEstimate estimate_of(const RunShape& run, const Coord& at) {
  const auto bytes = [](size_t n) { return static_cast<double>(n); };
  const RunMemory memory = run_memory(run, at);
  const size_t samples = on_gpu(run) ? 0 : memory.host;
  return {.parameters = bytes(memory.weights),
          .gradients = bytes(memory.grads),
          .optimizer = bytes(memory.optimizer),
          .activations = bytes(memory.activations()),
          .transient = bytes(memory.links + memory.scratch + memory.workspace + memory.batch + samples +
                             memory.scalars),
          .save_copy = bytes(memory.save_copy),
          .context = bytes(memory.nccl + memory.graphs)};
}

/// The trainer's answer for a run without CUDA graphs, if that fits into `there` bytes. What the command says
/// of them is obeyed.
std::optional<TrainerAnswer> without_graphs(const PlanProblem& p, const Candidate& c, double there) {
  if (!p.graphs || p.run_words.find(" --cuda-graph-impl ") != std::string::npos) return std::nullopt;
  PlanProblem lean = p;
  lean.graphs = false;
  TrainerAnswer answer = ask_trainer(lean, c);
  if (!answer.rank || answer.rank->estimate.needed() > there) return std::nullopt;
  answer.options = " --cuda-graph-impl none";
  return answer;
}

}  // namespace

PretrainConfig trainer_configuration(const PlanProblem& p, const Candidate& c) {
  PretrainConfig config;
  config.model = p.model.trained();
  ParallelConfig& parallel = config.parallel;
  parallel.tensor = c.tensor;
  parallel.pipeline = c.pipeline;
  parallel.context = c.context;
  parallel.data = c.data;
  parallel.world = p.machine.world;
  parallel.local_world = p.machine.world;  // the launcher decides how the ranks are spread over machines
  parallel.sequence = c.sequence;
  parallel.sharding = c.sharding;
  parallel.nproc = p.machine.world;
  parallel.rank_order = p.rank_order;
  parallel.bucket_size = p.bucket_size;
  parallel.bucket_count = p.bucket_count;
  if (c.chunks == 1 && c.pipeline > 1)
    for (int stage = 0; stage < c.pipeline; ++stage)
      parallel.pipeline_layers.push_back(std::to_string(stage_layers(p, c, stage)));
  if (c.chunks > 1) parallel.layers_per_chunk = p.model.layers / c.pipeline / c.chunks;
  TrainConfig& train = config.train;
  train.micro_batch = c.micro_batch;
  train.global_batch = static_cast<int>(c.global_batch);
  (p.fp16 ? train.fp16 : train.bf16) = p.precision == Precision::kHalf;
  if (!p.graphs) train.cuda_graphs = "none";
  if (p.software.first_moment_bytes == 2) train.first_moments = MomentType::kBf16;
  if (c.recompute == Recomputed::kAttention) train.recompute = Recompute::kSelective;
  if (c.recompute == Recomputed::kFull) {
    train.recompute = Recompute::kFull;
    const bool all = c.recompute_layers == 0;
    train.recompute_method = all ? "uniform" : "block";
    train.recompute_layers = all ? 1 : recomputed_of_chunk(c);
  }
  config.data.data_path = {"a plan reads no data"};
  return config;
}

RunShape trainer_run(const PlanProblem& p, const PretrainConfig& config) {
  RunShape run = run_shape(config);
  run.save_copy = p.save_copy;
  run.vocabulary = vocabulary_form(p);
  if (p.tuning.adapts()) {
    run.tuning = lora_plan(config.model, {.rank = p.tuning.lora_rank});
    run.tuning.int8 = p.tuning.eight_bits;
  }
  if (p.machine.device.multiprocessors > 0) run.train.device = "cuda";
  return run;
}

VocabularyForm vocabulary_form(const PlanProblem& p) {
  const Accelerator& device = p.machine.device;
  return device.multiprocessors > 0 ? gpu_vocabulary(static_cast<size_t>(device.memory)) : VocabularyForm{};
}

Software trainer_software() {
  Software s;
  s.head_rows = kHeadRows;
  return s;
}

std::string trainer_refusal(const PlanProblem& p, const Candidate& c) {
  if (const std::string missing = without_option(p, c); !missing.empty())
    return "this version's trainer has no option for " + missing;
  if (const int layers = most_stage_layers(p, c); layers > kMostCounted)
    return concat("a stage has ", layers, " layers, more than the ", kMostCounted,
                  " whose memory in this version's trainer is counted");
  const PretrainConfig config = trainer_configuration(p, c);
  Problems problems;
  config.parallel.validate(problems);
  config.parallel.validate(config.model, problems);
  check_run(config, problems);
  return problems.empty() ? "" : problems.list().front().message();
}

TrainerAnswer ask_trainer(const PlanProblem& p, const Candidate& c) {
  TrainerAnswer answer{.refusal = trainer_refusal(p, c), .rank = {}};
  if (!answer.refusal.empty()) return answer;
  try {
    const RunShape run = trainer_run(p, trainer_configuration(p, c));
    // Asks about one stage of each kind only. Asking about all eight stages of every plan took a fifth of the
    // program's time for a model of 22 billion parameters.
    for (const Layout::Kind& kind : layout_of(p, c, price_layer(p, shape_of(c))).kinds) {
      const MemoryEstimate estimate = estimate_of(run, {.pipeline = kind.stage});
      if (!answer.rank || estimate.needed() > answer.rank->estimate.needed())
        answer.rank = WorstStage{kind.stage, estimate};
    }
  } catch (const Error& e) {
    answer.refusal = e.what();
  }
  return answer;
}

TrainerAnswer ask_trainer_there(const PlanProblem& p, const Candidate& c) {
  if (!takes_megatrons_options(p.software))
    return {.refusal = "it is of --software " + p.software.code_base, .rank = {}};
  if (std::string lacking = lacking_there(kind_of(p)); !lacking.empty())
    return {.refusal = "this version does not train on " + lacking, .rank = {}};
  TrainerAnswer answer = ask_trainer(p, c);
  if (p.trained_here || !answer.rank) return answer;  // a plan for here is judged by this count already
  const double needed = answer.rank->estimate.needed(), there = p.machine.device.memory;
  if (needed <= there) return answer;
  if (auto without = without_graphs(p, c, there)) return *std::move(without);
  answer.refusal =
      concat("this version's trainer would need ", gigabytes(needed), " of ", gigabytes(there), " GB");
  return answer;
}

std::optional<ChangedRun> least_change_of_run(const PlanProblem& p, const Candidate& c) {
  if (!ask_trainer(p, c).rank) return std::nullopt;
  const auto changed = [&](const RunShape& run) {
    const TrainConfig& train = run.train;
    Candidate out = c;
    out.micro_batch = train.micro_batch;
    out.sharding = run.parallel.sharding;
    out.recompute = train.recompute == Recompute::kFull        ? Recomputed::kFull
                    : train.recompute == Recompute::kSelective ? Recomputed::kAttention
                                                               : Recomputed::kNone;
    out.recompute_layers =
        train.recompute_method == "block" ? train.recompute_layers.value_or(0) * c.chunks : 0;
    return out;
  };
  ChangedRun out;
  out.options = least_change(trainer_run(p, trainer_configuration(p, c)), [&](const RunShape& run) {
    PlanProblem copied = p;
    copied.save_copy = run.save_copy;
    Candidate candidate = changed(run);
    if (complete(copied, candidate)) return false;
    const std::optional<WorstStage> rank = ask_trainer(copied, candidate).rank;
    const bool fits = rank && rank->estimate.needed() <= usable_memory(p);
    if (fits) out.candidate = candidate, out.save_copy = run.save_copy;
    return fits;
  });
  return out.options.empty() ? std::nullopt : std::optional(out);
}

WorstStage fullest_stage(const PlanProblem& p, const Candidate& c, const LayerPrice& price,
                         const Layout& layout) {
  if (p.trained_here)
    if (const TrainerAnswer answer = ask_trainer(p, c); answer.rank) return *answer.rank;
  return worst_stage(p, c, price, layout);
}

std::vector<MemoryEstimate> stage_estimates(const PlanProblem& p, const Candidate& c) {
  std::vector<MemoryEstimate> out;
  const LayerPrice price = price_layer(p, shape_of(c));
  const bool asked = p.trained_here && ask_trainer(p, c).rank;
  const std::optional<RunShape> run =
      asked ? std::optional(trainer_run(p, trainer_configuration(p, c))) : std::nullopt;
  for (int stage = 0; stage < c.pipeline; ++stage)
    out.push_back(run ? estimate_of(*run, {.pipeline = stage})
                      : memory_estimate(p, c, price, stage_kind(p, c, price, stage)));
  return out;
}

}  // namespace megalith
