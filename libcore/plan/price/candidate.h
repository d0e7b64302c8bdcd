#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/parallel_config.h"
#include "libcore/plan/device/coefficients.h"
#include "libcore/plan/device/machine.h"
#include "libcore/plan/price/software.h"
#include "libcore/plan/shape/model_shape.h"
#include "libcore/train/step/layout.h"

namespace megalith {

/// What is recomputed in the backward pass.
enum class Recomputed : uint8_t {
  kNone,
  kAttention,  // the core attention: Megatron's selective
  kNormAct,    // norms and activation functions
  kProducts,   // everything except every second matrix product: torchtitan's selective-op
  kFull,       // whole layers
};

/// One way to partition the work. data, microbatches and global_batch follow from the rest (complete()).
struct Candidate {
  int tensor = 1, pipeline = 1, context = 1, data = 1;
  int expert = 1, expert_tensor = 1;  // ranks that share the experts; ranks that share each expert's matrices
  int chunks = 1;                     // model chunks per pipeline rank; 1: not interleaved
  int micro_batch = 1;                // samples
  int first_layers = 0, last_layers = 0;  // layers of the first and last stage; 0: as many as the others
  int recompute_layers = 0;               // with kFull, layers of a stage (recomputed_layers()); 0: all
  bool counts_embedding = false,
       counts_head = false;  // as one layer of the end stage, which has one layer less (L2)
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

/// What is to be planned.
struct PlanProblem {
  ModelShape model;  // after finish(), with vocab_size known
  Machine machine;
  Software software = {};
  Precision precision = Precision::kHalf;
  /// What an asynchronous save copies in host memory. Counts only in a plan for this machine's processor,
  /// where host memory is the device's memory.
  RunShape::SaveCopy save_copy = RunShape::SaveCopy::kNone;
  bool needs_save_copy = false;  // --async-save: every plan must have room for that copy
  bool trained_here = false;     // this version's trainer runs the plan: its own count decides what fits
  bool fp16 = false;             // kHalf means fp16 instead of bf16; their costs are equal
  std::string fp8_format = {}, fp8_recipe = {};  // as the options spell them; empty: implied by the precision
  /// Options of the run that no plan changes, which its launch lines repeat (request/run_words.h): those for
  /// our trainer, and those for Megatron-LM.
  std::string run_words = {}, megatron_words = {};
  int64_t global_batch = 0;            // 0: not fixed
  int64_t max_global_batch = 0;        // 0: no limit
  std::vector<int> stage_layers = {};  // layers of each pipeline stage; empty: not given by the user
  /// Where in the interval of the token imbalance the time is evaluated: 0 at its lower end, 1 at the upper.
  /// Memory is always evaluated at the upper end.
  double imbalance_point = 0.5;
  const Coefficients* coefficients = &fitted_coefficients();

  bool half() const { return precision != Precision::kFloat32; }
  double element() const { return half() ? 2 : 4; }  // bytes of an activation
};

/// The largest number of ranks that hold the same parameters: the data and context ranks share everything
/// except the experts, and experts may have several holders even with a single data rank (expert_data()).
int holders(const PlanProblem&, const Candidate&);

/// Layers of the model, plus one each for an embedding and a head that count as a layer (L2).
int counted_layers(const PlanProblem&, const Candidate&);
/// Layers of a pipeline stage: those of the user's table if there is one. Otherwise the ends have
/// first_layers and last_layers if these are set, and the other stages share the rest evenly; where it does
/// not divide, the late stages except the pipeline's last one have one more.
int stage_layers(const PlanProblem&, const Candidate&, int stage);
/// Layers of a pipeline stage without experts; 0 for a dense model.
int stage_plain_layers(const PlanProblem&, const Candidate&, int stage);
/// Layers of the stage with the most layers.
int most_stage_layers(const PlanProblem&, const Candidate&);

/// The layers per chunk that are recomputed whole (kFull) when not all are: each chunk recomputes equally
/// many (R1), so the stage's recompute_layers count as the next multiple of the chunks.
int recomputed_of_chunk(const Candidate&);
/// The layers recomputed whole in a stage of `layers` layers: all of them if recompute_layers is 0.
int recomputed_layers(const Candidate&, int layers);

}  // namespace megalith
