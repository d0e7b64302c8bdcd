#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/options/fields.h"

namespace megalith {

struct ModelConfig;

/// What the data-parallel ranks share instead of each keeping a whole copy (ZeRO's stages).
enum class Sharding {
  kNone,
  kOptimizer,   // ZeRO-1: the optimizer's state
  kGradients,   // ZeRO-2: also the gradients
  kParameters,  // ZeRO-3: declared only so that it can be rejected by name
};
inline std::vector<EnumName<Sharding>> enum_names(Sharding) {
  return {{"none", Sharding::kNone},
          {"stage1", Sharding::kOptimizer},
          {"stage2", Sharding::kGradients},
          {"stage3", Sharding::kParameters}};
}

/// How the ranks share the work. Names and defaults are Megatron's.
struct ParallelConfig {
  static constexpr int kMaxRanks = 1 << 20;
  static constexpr int kMaxThreadRanks = 1024;
  /// Values of nproc for --nproc auto and gpu, until finish() replaces them.
  static constexpr int kAutoRanks = -1, kGpuRanks = -2;
  int tensor = 1, pipeline = 1, context = 1, expert = 1;
  int data = 0;                              // derived: world / (tensor * pipeline * context)
  std::optional<int> layers_per_chunk = {};  // for an interleaved pipeline: the layers of one chunk
  std::optional<int> first_layers = {}, last_layers = {};  // layers of the first and the last pipeline rank
  /// The layers of every chunk, in order of depth; see layer_counts().
  std::vector<std::string> pipeline_layers = {};
  bool sequence = false;               // norms and dropout are split along the sequence
  bool distributed_optimizer = false;  // derived: sharded(); if given, finish() sets kOptimizer
  Sharding sharding = Sharding::kNone;
  /// The elements of a bucket; derived where it is needed (train/step/layout).
  std::optional<int64_t> bucket_size = {};
  std::optional<int> bucket_count = {};  // number of buckets, given instead of bucket_size
  int nproc = 0;                         // ranks that are threads of this process; 0: not given
  int world = 0, local_world = 0;        // derived: nproc, or the ranks that the other sizes need
  int processes = 0;         // ranks that a launcher started; not an option; 0: there is no launcher
  int timeout_minutes = 10;  // longest wait for another rank
  bool rank_order = false;   // sums of GPU ranks are in rank order, as those of CPU ranks always are
  std::optional<int> timeout_seconds = {};  // the same once all ranks are connected; unset: timeout_minutes

  template <class V>
  void fields(V&& v) {
    v("tensor-model-parallel-size", tensor, "Ranks that share each layer's matrices.", between(1, 1024),
      alias({"tensor-parallel-degree", "model-parallel-size"}));
    v("pipeline-model-parallel-size", pipeline, "Ranks that share the depth.", between(1, 1024),
      alias({"pipeline-parallel-degree"}));
    v("num-layers-per-virtual-pipeline-stage", layers_per_chunk,
      "Interleave the pipeline in chunks of this many layers.", at_least(1));
    v("decoder-first-pipeline-num-layers", first_layers,
      "Layers of the first pipeline rank; the others share the rest evenly.", at_least(1));
    v("decoder-last-pipeline-num-layers", last_layers,
      "Layers of the last pipeline rank; the others share the rest evenly.", at_least(1));
    v("pipeline-layers", pipeline_layers,
      "Layers of every part of the pipeline in order of depth, such as 10,12,12,10; with several parts for "
      "each rank the pipeline is interleaved.",
      metavar("N,N"));
    v("context-parallel-size", context,
      "Ranks that share each sequence, with two spans of its positions each; attention gathers keys and "
      "values.",
      between(1, 1024));
    v("expert-model-parallel-size", expert, "Ranks that share the experts.", between(1, 1024));
    v("data-parallel-size", data,
      "Ranks (or groups that share a sequence) with their own samples; tensor * pipeline * context * data = "
      "ranks.",
      between(0, kMaxRanks), default_text("ranks / (tensor * pipeline * context)"));
    v("sequence-parallel", sequence,
      "Divide norms and dropout along the sequence; needs tensor-model-parallel-size > 1.");
    v("use-distributed-optimizer", distributed_optimizer,
      "Divide the optimizer state over the data-parallel ranks (--sharding stage1).");
    v("sharding", sharding,
      "What is divided over the data-parallel ranks: stage1 the optimizer state (ZeRO-1), stage2 also the "
      "gradients (needs pipeline-model-parallel-size 1); stage3 is refused.");
    v("ddp-bucket-size", bucket_size,
      "Parameters whose gradients are reduced over the data-parallel ranks in one call.", at_least(1),
      default_text("max(40 million, 1 million * data-parallel ranks); with --sharding stage2 one layer's"));
    v("ddp-num-buckets", bucket_count,
      "Approximate number of calls in which a rank's gradients are reduced, in place of --ddp-bucket-size.",
      between(1, 1 << 20));
    v("nproc", nproc,
      "Ranks, as threads of one process; auto: one for each NUMA node whose CPUs the process may use; gpu: "
      "one for each device of CUDA_VISIBLE_DEVICES, else of the machine.",
      between(0, kMaxThreadRanks), word_value("auto", kAutoRanks), word_value("gpu", kGpuRanks),
      metavar("N|auto|gpu"), alias({"nproc-per-node"}));
    v("world-size", world, "Number of ranks.", between(0, kMaxRanks),
      default_text("nproc, else tensor * pipeline * context * data"));
    v("local-world-size", local_world, "Ranks of one machine.", between(0, kMaxRanks),
      default_text("world-size; of a plan at most 8"));
    v("distributed-timeout-minutes", timeout_minutes,
      "Longest wait for another rank; after it the run ends and names that rank.", between(1, 1 << 20));
    v("distributed-timeout-seconds-after-init", timeout_seconds, "The same once all ranks have connected.",
      between(1, 1 << 20), default_text("--distributed-timeout-minutes"));
    v("deterministic-collectives", rank_order,
      "Add the tensors of GPU ranks in rank order, as those of CPU ranks always are. Slower; the bits then "
      "do not depend on the algorithm that NCCL chooses.");
  }
  /// The number of ranks that --nproc means. kUsage for gpu without a GPU.
  static int ranks_of(int nproc);
  void finish();
  void validate(Problems&) const;
  void validate(const ModelConfig&, Problems&) const;  // whether the model can be split this way

  int model_ranks() const { return tensor * pipeline * context; }
  /// The number of ranks that hold the same parameters.
  int copies() const { return data * context; }
  std::chrono::milliseconds join_timeout() const { return std::chrono::minutes(timeout_minutes); }
  std::chrono::milliseconds peer_timeout() const {
    return timeout_seconds ? std::chrono::seconds(*timeout_seconds) : join_timeout();
  }
  bool sharded() const { return sharding != Sharding::kNone; }
  /// The number of model chunks on each pipeline rank; if it is above 1, the pipeline is interleaved.
  int chunks(int layers) const;
  /// The layers of each of the pipeline * chunks(layers) chunks, in order of depth: those of
  /// --pipeline-layers, or of --decoder-first/last-pipeline-num-layers; otherwise distributed evenly. Empty,
  /// with a complaint, when `layers` cannot be split.
  std::vector<int> layer_counts(int layers, Problems&) const;
};

extern template std::vector<Field> fields_of<ParallelConfig>(ParallelConfig&);

}  // namespace megalith
