#include "libcore/config/parallel_config.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/machine/numa.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/config/model_config.h"

namespace megalith {
namespace {

constexpr Opt kTensor{"tensor-model-parallel-size"};
constexpr Opt kPipeline{"pipeline-model-parallel-size"};
constexpr Opt kFirstLayers{"decoder-first-pipeline-num-layers"};
constexpr Opt kLastLayers{"decoder-last-pipeline-num-layers"};
constexpr Opt kChunkLayers{"num-layers-per-virtual-pipeline-stage"};

/// The entries of --pipeline-layers, separated by commas or given as separate arguments.
std::vector<std::string> list_entries(const ParallelConfig& config) {
  std::vector<std::string> entries;
  for (const std::string& word : config.pipeline_layers)
    for (const std::string& entry : split(word, ',')) entries.push_back(entry);
  return entries;
}

/// Returns nothing and complains when an entry is not a number of layers.
std::vector<int> parse_entries(const ParallelConfig& config, Problems& problems) {
  std::vector<int> counts;
  for (const std::string& entry : list_entries(config)) {
    const auto count = parse_int(trim(entry));
    if (!count || *count < 1 || *count > std::numeric_limits<int>::max()) {
      problems.add(Opt{"pipeline-layers"}, ' ', quote(join(config.pipeline_layers, " ")), ": ", quote(entry),
                   " is not a number of layers; wanted at least 1 for each part, such as 10,12,12,10");
      return {};
    }
    counts.push_back(static_cast<int>(*count));
  }
  return counts;
}

std::vector<int> listed_layers(const ParallelConfig& config, int layers, Problems& problems) {
  const size_t before = problems.list().size();
  const Phrase option(Opt{"pipeline-layers"}, ' ', join(config.pipeline_layers, " "));
  for (const auto& [name, given] : {std::pair{kFirstLayers, config.first_layers.has_value()},
                                    {kLastLayers, config.last_layers.has_value()},
                                    {kChunkLayers, config.layers_per_chunk.has_value()}})
    if (given) problems.add(option, " and ", name, " contradict each other; give one of them");
  std::vector<int> counts = parse_entries(config, problems);
  const auto parts = static_cast<int64_t>(counts.size());
  const int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (parts % config.pipeline != 0)
    problems.add(option, " has ", parts, " parts, not a multiple of ", kPipeline, ' ', config.pipeline,
                 nearest_multiples(parts, config.pipeline));
  else if (config.pipeline == 1 && parts > 1)
    problems.add(option, " needs ", kPipeline, " > 1");
  if (!counts.empty() && sum != layers)
    problems.add(option, " adds up to ", sum, " layers, not to ", Opt{"num-layers"}, ' ', layers, "; ",
                 sum < layers ? "give the parts " : "take from the parts ",
                 sum < layers ? layers - sum : sum - layers, sum < layers ? " more" : "");
  if (problems.list().size() > before) counts.clear();
  return counts;
}

/// The layers of each rank: as given for the first and the last one, and distributed evenly over the others.
std::vector<int> uneven_layers(const ParallelConfig& config, int layers, Problems& problems) {
  Phrase given;
  for (const auto& [name, value] :
       {std::pair{kFirstLayers, config.first_layers}, {kLastLayers, config.last_layers}})
    if (value) given.append(Phrase(given.empty() ? "" : " and ", name, ' ', *value));
  if (config.pipeline == 1) {
    problems.add(given, config.first_layers && config.last_layers ? " need " : " needs ", kPipeline, " > 1");
    return {};
  }
  if (config.layers_per_chunk) {
    problems.add(given, " cannot be combined with ", kChunkLayers, "; give ", Opt{"pipeline-layers"},
                 " instead");
    return {};
  }
  const int64_t rest = int64_t{layers} - config.first_layers.value_or(0) - config.last_layers.value_or(0);
  const int others = config.pipeline - (config.first_layers ? 1 : 0) - (config.last_layers ? 1 : 0);
  if (others == 0 ? rest != 0 : rest < others || rest % others != 0) {
    if (others == 0)
      problems.add(given, " add up to ", layers - rest, " layers, not to ", Opt{"num-layers"}, ' ', layers,
                   "; leave one of them out");
    else
      problems.add(given, " of ", Opt{"num-layers"}, ' ', layers, ": ", std::max<int64_t>(rest, 0),
                   " layers are left for the ", others, " other pipeline ranks, not a multiple of ", others,
                   nearest_multiples(std::max<int64_t>(rest, 0), others));
    return {};
  }
  std::vector<int> counts(static_cast<size_t>(config.pipeline),
                          others == 0 ? 0 : static_cast<int>(rest / others));
  if (config.first_layers) counts.front() = *config.first_layers;
  if (config.last_layers) counts.back() = *config.last_layers;
  return counts;
}

std::vector<int> even_layers(const ParallelConfig& config, int layers, Problems& problems) {
  const int ranks = config.pipeline;
  if (layers % ranks != 0) {
    problems.add(Opt{"num-layers"}, ' ', layers, " is not a multiple of ", kPipeline, ' ', ranks,
                 nearest_multiples(layers, ranks),
                 layers > ranks ? Phrase("; or give ", Opt{"pipeline-layers"}) : Phrase());
    return {};
  }
  const int share = layers / ranks, per_chunk = config.layers_per_chunk.value_or(share);
  if (share % per_chunk != 0) {
    problems.add(Opt{"num-layers"}, ' ', layers, " gives ", share, " layers to each of ", ranks,
                 " pipeline ranks, not a multiple of ", kChunkLayers, ' ', per_chunk);
    return {};
  }
  return std::vector<int>(static_cast<size_t>(layers / per_chunk), per_chunk);
}

}  // namespace

int ParallelConfig::ranks_of(int nproc) {
  if (nproc == kAutoRanks) return std::min(static_cast<int>(numa_nodes().size()), usable_cpus());
  if (nproc != kGpuRanks) return nproc;
  const int gpus = visible_gpus();
  if (gpus == 0) {
    const std::string named = environment("CUDA_VISIBLE_DEVICES");
    fail(ErrorKind::kUsage, "--nproc gpu: ",
         named.empty() ? "CUDA_VISIBLE_DEVICES names no device, and this machine has none"
                       : concat("CUDA_VISIBLE_DEVICES=", quote(named),
                                " names no device, or one of them twice; wanted a list such as 0,2"),
         "; give a number, or auto for one rank a NUMA node");
  }
  return gpus;
}

void ParallelConfig::finish() {
  nproc = ranks_of(nproc);
  if (world == 0 && processes > 0) world = processes;
  if (world == 0 && nproc > 0) world = nproc;
  if (world == 0)
    world = static_cast<int>(std::min(int64_t{std::max(data, 1)} * model_ranks(), int64_t{kMaxRanks}));
  if (local_world == 0) local_world = world;
  if (data == 0) data = std::max(world / model_ranks(), 1);
  if (tensor == 1) sequence = false;  // as in Megatron: a single tensor rank has nothing to split
  if (distributed_optimizer && !sharded()) sharding = Sharding::kOptimizer;
  distributed_optimizer = sharded();
}

void ParallelConfig::validate(Problems& problems) const {
  const Phrase product(kTensor, ' ', tensor, " * ", kPipeline, ' ', pipeline,
                       context > 1 ? Phrase(" * ", Opt{"context-parallel-size"}, ' ', context) : Phrase());
  if (world % model_ranks() != 0)
    problems.add(product, " = ", model_ranks(), " does not divide the ", world, " ranks",
                 nearest_multiples(world, model_ranks()));
  else if (int64_t{data} * model_ranks() != world)
    problems.add(product, " * ", Opt{"data-parallel-size"}, ' ', data, " = ", int64_t{data} * model_ranks(),
                 " is not the number of ranks, ", world, "; leave ", Opt{"data-parallel-size"},
                 " out, or give ", world / model_ranks());
  if (world % local_world != 0)
    problems.add(Opt{"world-size"}, ' ', world, " is not a multiple of ", Opt{"local-world-size"}, ' ',
                 local_world, nearest_multiples(world, local_world));
  if (layers_per_chunk && pipeline == 1)
    problems.add(kChunkLayers, ' ', *layers_per_chunk, " needs ", kPipeline, " > 1");
  if (bucket_size && bucket_count)
    problems.add(Opt{"ddp-bucket-size"}, ' ', *bucket_size, " and ", Opt{"ddp-num-buckets"}, ' ',
                 *bucket_count, " contradict each other; give one of them");
  if (sharding == Sharding::kGradients && pipeline > 1)
    problems.add(Opt{"sharding"}, " stage2 needs ", kPipeline, " 1, not ", pipeline,
                 ": each micro-batch's gradients are sharded as soon as it is done; give ", Opt{"sharding"},
                 " stage1");
  if (sharding == Sharding::kParameters)
    problems.add(Opt{"sharding"},
                 " stage3 is not supported: parameters are not sharded over the data-parallel ranks; give ",
                 Opt{"sharding"}, " stage2 or stage1, or shard them with ", kTensor);
}

void ParallelConfig::validate(const ModelConfig& model, Problems& problems) const {
  const Phrase tensor_size(kTensor);
  const auto divides = [&](const Opt& what, int64_t value, const Phrase& by, int64_t divisor) {
    if (value > 0 && value % divisor != 0)
      problems.add(what, ' ', value, " is not a multiple of ", by, ' ', divisor,
                   nearest_multiples(value, divisor));
  };
  divides({"num-attention-heads"}, model.heads, tensor_size, tensor);
  if (model.group_query) divides({"num-query-groups"}, model.query_groups, tensor_size, tensor);
  divides({"ffn-hidden-size"}, model.ffn_hidden, tensor_size, tensor);
  if (context > 1 && sequence)
    divides({"seq-length"}, model.seq_length,
            Phrase("2 * ", Opt{"context-parallel-size"}, ' ', context, " * ", kTensor, ' ', tensor, " ="),
            int64_t{2} * context * tensor);
  else if (context > 1)
    divides({"seq-length"}, model.seq_length,
            Phrase("2 * ", Opt{"context-parallel-size"}, ' ', context, " ="), int64_t{2} * context);
  else if (sequence)
    divides({"seq-length"}, model.seq_length, tensor_size, tensor);
  if (model.layers > 0) layer_counts(model.layers, problems);
  if (expert > 1 && !model.experts)
    problems.add(Opt{"expert-model-parallel-size"}, ' ', expert, " needs ", Opt{"num-experts"});
}

int ParallelConfig::chunks(int layers) const {
  if (!pipeline_layers.empty()) return std::max(1, static_cast<int>(list_entries(*this).size()) / pipeline);
  return layers_per_chunk ? std::max(1, layers / pipeline / *layers_per_chunk) : 1;
}

std::vector<int> ParallelConfig::layer_counts(int layers, Problems& problems) const {
  if (!pipeline_layers.empty()) return listed_layers(*this, layers, problems);
  return first_layers || last_layers ? uneven_layers(*this, layers, problems)
                                     : even_layers(*this, layers, problems);
}

template std::vector<Field> fields_of<ParallelConfig>(ParallelConfig&);

}  // namespace megalith
