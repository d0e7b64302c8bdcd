#include "libcore/config/parallel_config.h"

#include <algorithm>

#include "libcore/config/model_config.h"

namespace megalith {

void ParallelConfig::finish() {
  if (world == 0)
    world = static_cast<int>(std::min(int64_t{std::max(data, 1)} * model_ranks(), int64_t{kMostRanks}));
  if (local_world == 0) local_world = world;
  if (data == 0) data = std::max(world / model_ranks(), 1);
  if (tensor == 1) sequence = false;  // nothing to cut, as in Megatron
}

void ParallelConfig::validate(Problems& problems) const {
  const std::string product =
      concat("--tensor-model-parallel-size ", tensor, " * --pipeline-model-parallel-size ", pipeline,
             context > 1 ? concat(" * --context-parallel-size ", context) : std::string());
  if (world % model_ranks() != 0)
    problems.add(product, " = ", model_ranks(), " does not divide the ", world, " ranks",
                 nearest_multiples(world, model_ranks()));
  else if (int64_t{data} * model_ranks() != world)
    problems.add(product, " * --data-parallel-size ", data, " = ", int64_t{data} * model_ranks(),
                 " is not the number of ranks, ", world, "; leave --data-parallel-size out, or give ",
                 world / model_ranks());
  if (world % local_world != 0)
    problems.add("--world-size ", world, " is not a multiple of --local-world-size ", local_world,
                 nearest_multiples(world, local_world));
  if (layers_per_chunk && pipeline == 1)
    problems.add("--num-layers-per-virtual-pipeline-stage ", *layers_per_chunk,
                 " needs --pipeline-model-parallel-size > 1");
}

void ParallelConfig::validate(const ModelConfig& model, Problems& problems) const {
  const auto divides = [&](const char* what, int64_t value, const char* by, int64_t divisor) {
    if (value > 0 && value % divisor != 0)
      problems.add(what, ' ', value, " is not a multiple of ", by, ' ', divisor,
                   nearest_multiples(value, divisor));
  };
  constexpr const char* kTensor = "--tensor-model-parallel-size";
  divides("--num-attention-heads", model.heads, kTensor, tensor);
  if (model.group_query) divides("--num-query-groups", model.query_groups, kTensor, tensor);
  divides("--ffn-hidden-size", model.ffn_hidden, kTensor, tensor);
  if (sequence)
    divides("--seq-length", model.seq_length, "--tensor-model-parallel-size * --context-parallel-size",
            int64_t{tensor} * context);
  if (context > 1)
    divides("--seq-length", model.seq_length, "2 * --context-parallel-size", int64_t{2} * context);
  divides("--num-layers", model.layers, "--pipeline-model-parallel-size", pipeline);
  if (layers_per_chunk && model.layers % pipeline == 0 && model.layers / pipeline % *layers_per_chunk != 0)
    problems.add("--num-layers ", model.layers, " gives ", model.layers / pipeline, " layers to each of ",
                 pipeline, " pipeline ranks, not a multiple of --num-layers-per-virtual-pipeline-stage ",
                 *layers_per_chunk);
  if (expert > 1 && !model.experts)
    problems.add("--expert-model-parallel-size ", expert, " needs --num-experts");
}

}  // namespace megalith
