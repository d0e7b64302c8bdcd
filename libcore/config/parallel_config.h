#pragma once

#include <optional>

#include "libcore/config/fields.h"

namespace megalith {

struct ModelConfig;

/// How the ranks share the work. Names and defaults are Megatron's.
struct ParallelConfig {
  static constexpr int kMostRanks = 1 << 20;
  int tensor = 1, pipeline = 1, context = 1, expert = 1;
  int data = 0;                         // derived: world / (tensor * pipeline * context)
  std::optional<int> layers_per_chunk;  // interleaved pipeline: layers of one of a rank's chunks
  bool sequence = false;                // norms and dropout cut along the sequence
  bool distributed_optimizer = false;   // optimizer state cut over the data-parallel ranks
  int world = 0, local_world = 0;       // derived: from the launcher's environment, else 1

  template <class V>
  void fields(V&& v) {
    v("tensor-model-parallel-size", tensor, "Ranks that share each layer's matrices.", between(1, 1024),
      alias({"tensor-parallel-degree", "model-parallel-size"}));
    v("pipeline-model-parallel-size", pipeline, "Ranks that share the depth.", between(1, 1024),
      alias({"pipeline-parallel-degree"}));
    v("num-layers-per-virtual-pipeline-stage", layers_per_chunk,
      "Interleave the pipeline in chunks of this many layers.", at_least(1));
    v("context-parallel-size", context, "Ranks that share a sequence.", between(1, 1024));
    v("expert-model-parallel-size", expert, "Ranks that share the experts.", between(1, 1024));
    v("data-parallel-size", data,
      "Ranks that hold the same parameters; tensor * pipeline * context * data = ranks.",
      between(0, kMostRanks), default_text("ranks / (tensor * pipeline * context)"));
    v("sequence-parallel", sequence,
      "Cut norms and dropout along the sequence; needs tensor-model-parallel-size > 1.");
    v("use-distributed-optimizer", distributed_optimizer,
      "Cut the optimizer state over the data-parallel ranks.");
    v("world-size", world, "Ranks in all.", between(0, kMostRanks),
      default_text("from the launcher, else one per model"));
    v("local-world-size", local_world, "Ranks of one machine.", between(0, kMostRanks),
      default_text("from the launcher"));
  }
  void finish();
  void validate(Problems&) const;
  void validate(const ModelConfig&, Problems&) const;  // whether the model can be cut so

  int model_ranks() const { return tensor * pipeline * context; }
};

}  // namespace megalith
