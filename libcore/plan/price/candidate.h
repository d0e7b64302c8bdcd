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

/// What is run again in the backward pass.
enum class Recomputed : uint8_t {
  kNone,
  kAttention,  // the core attention: Megatron's selective
  kNormAct,    // norms and activation functions
  kProducts,   // all but every second matrix product: torchtitan's selective-op
  kFull,       // whole layers
};

/// One way to share the work. data, microbatches and global_batch follow from the rest (complete()).
struct Candidate {
  int tensor = 1, pipeline = 1, context = 1, data = 1;
  int expert = 1, expert_tensor = 1;      // ranks that share the experts, and each expert's matrices
  int chunks = 1;                         // model chunks of a pipeline rank; 1: not interleaved
  int micro_batch = 1;                    // samples
  int first_layers = 0, last_layers = 0;  // of the first and last stage; 0: as many as the others
  int recompute_layers = 0;               // of a stage, with kFull (recomputed_layers()); 0: all
  bool counts_embedding = false,
       counts_head = false;  // as a layer each, of an end that is a layer short (L2)
  bool sequence = false;
  Sharding sharding = Sharding::kNone;
  Recomputed recompute = Recomputed::kNone;
  int64_t microbatches = 1;
  int64_t global_batch = 1;

  /// Ranks that hold the same experts: those of a pipeline stage that tensor, context and data ranks share
  /// otherwise.
  int expert_data() const { return tensor * context * data / (expert * expert_tensor); }
  bool operator==(const Candidate&) const = default;
};

/// What is to be planned.
struct PlanProblem {
  ModelShape model;  // finish()ed, vocab_size known
  Machine machine;
  Software software = {};
  Precision precision = Precision::kHalf;
  /// What a save copies in the host's memory, where that is the device's, too: a plan of this processor.
  RunShape::SaveCopy save_copy = RunShape::SaveCopy::kNone;
  bool needs_save_copy = false;  // --async-save: no plan without that copy
  bool trained_here = false;     // this version's trainer runs the plan: its own count says what fits
  bool fp16 = false;             // kHalf is fp16 and not bf16; their costs are the same
  std::string fp8_format = {}, fp8_recipe = {};  // in the options' words; empty: what the precision says
  /// Options of the run that no plan changes, for its launch lines (request/run_words.h): of our trainer's,
  /// and of Megatron's.
  std::string run_words = {}, megatron_words = {};
  int64_t global_batch = 0;            // 0: not fixed
  int64_t max_global_batch = 0;        // 0: no bound
  std::vector<int> stage_layers = {};  // layers of each pipeline stage, when the user gave them
  /// Where in the interval of the token imbalance the time is taken: 0 at its lower end, 1 at the upper.
  /// Memory is always taken at the upper.
  double imbalance_point = 0.5;
  const Coefficients* coefficients = &fitted_coefficients();

  bool half() const { return precision != Precision::kFloat32; }
  double element() const { return half() ? 2 : 4; }  // bytes of an activation
};

/// Ranks that hold the same parameters, of those of which most do: the data and context ranks share all but
/// the experts, and experts may have several holders where there is one rank of data (expert_data()).
int holders(const PlanProblem&, const Candidate&);

/// Layers of the model, and the ends that count as one each (L2).
int counted_layers(const PlanProblem&, const Candidate&);
/// Layers of a pipeline stage: what the user gave, else first_layers and last_layers, else the same in each,
/// and where they do not divide, one more in stages before the last.
int stage_layers(const PlanProblem&, const Candidate&, int stage);
/// Those of them that have no experts, of a model that has some.
int stage_plain_layers(const PlanProblem&, const Candidate&, int stage);
/// Layers of the stage that has most.
int most_stage_layers(const PlanProblem&, const Candidate&);

/// The layers of a chunk that are run again whole (kFull) where not all are: each chunk runs as many again
/// (R1), so that the stage's recompute_layers count as the next multiple of the chunks.
int recomputed_of_chunk(const Candidate&);
/// The same of a stage of `layers`, all of them where recompute_layers is 0.
int recomputed_layers(const Candidate&, int layers);

}  // namespace megalith
