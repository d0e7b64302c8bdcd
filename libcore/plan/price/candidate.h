#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/checkpoint_config.h"
#include "libcore/config/parallel_config.h"
#include "libcore/plan/device/coefficients.h"
#include "libcore/plan/device/machine.h"
#include "libcore/plan/price/software.h"
#include "libcore/plan/shape/model_shape.h"

namespace megalith {

/// What is recomputed in the backward pass.
enum class Recomputed : uint8_t {
  kNone,
  kAttention,  // the core attention: Megatron's selective
  kNormAct,    // norms and activation functions
  kProducts,   // everything except every second matrix product: torchtitan's selective-op
  kFull,       // whole layers
};

/// One way to partition the work. complete() computes data, microbatches and global_batch from the rest.
struct Candidate {
  int tensor = 1, pipeline = 1, context = 1, data = 1;
  int expert = 1, expert_tensor = 1;  // ranks that share the experts; ranks that share each expert's matrices
  int chunks = 1;                     // model chunks per pipeline rank; 1: not interleaved
  int micro_batch = 1;                // samples
  int first_layers = 0, last_layers = 0;  // layers of the first and last stage; 0: as many as the others
  int recompute_layers = 0;  // with kFull: recomputed layers of a stage (recomputed_layers()); 0: all
  /// Whether the embedding, or the head, counts as a layer of its stage, which then has one layer less (L2).
  bool counts_embedding = false, counts_head = false;
  bool sequence = false;
  Sharding sharding = Sharding::kNone;
  Recomputed recompute = Recomputed::kNone;
  int64_t microbatches = 1;
  int64_t global_batch = 1;

  /// The number of ranks that hold the same experts. A pipeline stage has tensor * context * data ranks, of
  /// which expert * expert_tensor hold all its experts once.
  int expert_data() const { return tensor * context * data / (expert * expert_tensor); }
  bool operator==(const Candidate&) const = default;
};

/// What of a model a run trains. By default, a new model as a whole.
struct PlannedTuning {
  bool finetunes = false;   // the model exists: launch lines are those of megalith-finetune
  std::string model = {};   // its folder; empty: not given
  int lora_rank = 0;        // of LoRA adapters on all linear layers of the transformer layers, while all else
                            // is frozen (model/params.h); 0: all parameters are trained
  bool eight_bits = false;  // the frozen linear layers are kept in 8 bits, with a scale for each row

  bool adapts() const { return lora_rank > 0; }
};

/// What is to be planned.
struct PlanProblem {
  ModelShape model;  // its finish() was called, and vocab_size is known
  Machine machine;
  Software software = {};
  Precision precision = Precision::kHalf;
  PlannedTuning tuning = {};
  /// What an asynchronous save copies to host memory. The copy counts only in a plan for this machine's
  /// processor, whose own memory it occupies.
  SaveCopy save_copy = SaveCopy::kNone;
  bool needs_save_copy = false;  // for --async-save: every plan must have room for that copy
  /// Whether this version's trainer runs the plan, so that its own count of memory decides what fits.
  bool trained_here = false;
  /// Whether GPUs add the tensors of ranks in rank order (--deterministic-collectives).
  bool rank_order = false;
  /// Whether our trainer may repeat passes as CUDA graphs, which take memory (--cuda-graph-impl).
  bool graphs = true;
  /// The buckets of our trainer's gradients, as ParallelConfig has them.
  std::optional<int64_t> bucket_size = {};
  std::optional<int> bucket_count = {};
  bool fp16 = false;  // whether kHalf means fp16 instead of bf16; both cost the same
  std::string fp8_format = {}, fp8_recipe = {};  // the values of the options; empty: implied by the precision
  /// The options of the run that no plan changes, as launch lines repeat them (request/run_words.h): for our
  /// trainer, or megalith-finetune; and for Megatron-LM.
  std::string run_words = {}, megatron_words = {};
  /// The probability with which a plan must not run out of memory (fit_probability()). At a half, what is
  /// predicted decides.
  double asked_probability = 0.5;
  bool measured = false;         // whether the device's rates come from measurements (--calibrate, --anchor)
  int64_t global_batch = 0;      // samples of one step; 0: not fixed
  int64_t max_global_batch = 0;  // largest global batch that a plan may use; 0: no limit
  std::vector<int> stage_layers = {};  // layers of each pipeline stage; empty: not given by the user
  /// The token imbalance for which times are computed, as a position in its interval: 0 is the lower end, 1
  /// the upper. Memory is always computed for the upper end.
  double imbalance_point = 0.5;
  const Coefficients* coefficients = &fitted_coefficients();

  bool half() const { return precision != Precision::kFloat32; }
  double element() const { return half() ? 2 : 4; }  // bytes of an activation
  /// Whether ranks send each other the parts that they add. Ranks on a processor add in their order anyway.
  bool sends_parts() const { return rank_order && machine.device.multiprocessors > 0; }
};

/// The largest number of ranks that hold the same parameters. The data and context ranks hold the same
/// parameters except for the experts; an expert may be held by several ranks even if there is a single data
/// rank (expert_data()).
int holders(const PlanProblem&, const Candidate&);

/// The sharding as which memory and exchange count. FSDP with a pipeline counts as a sharded optimizer where
/// the program gathers parameters once a step (Software::pipelines_gather_once).
Sharding counted_sharding(const PlanProblem&, const Candidate&);

/// The number of layers of the model, plus one each for an embedding and a head that count as a layer (L2).
int counted_layers(const PlanProblem&, const Candidate&);
/// The number of layers of a pipeline stage, from the user's table if there is one. Otherwise the first and
/// the last stage have first_layers and last_layers if these are set, and the other stages share the rest
/// evenly. If the rest does not divide, the late stages, except the pipeline's last one, have one layer more.
int stage_layers(const PlanProblem&, const Candidate&, int stage);
/// The number of a stage's layers that have no experts; 0 for a dense model.
int stage_plain_layers(const PlanProblem&, const Candidate&, int stage);
/// The number of layers of the largest stage.
int most_stage_layers(const PlanProblem&, const Candidate&);

/// The number of layers that each chunk recomputes whole (kFull) if not all are recomputed. Each chunk
/// recomputes equally many (R1), so recompute_layers is rounded up to a multiple of the number of chunks.
int recomputed_of_chunk(const Candidate&);
/// The number of layers that a stage of `layers` layers recomputes whole: all of them if recompute_layers is
/// 0.
int recomputed_layers(const Candidate&, int layers);

}  // namespace megalith
