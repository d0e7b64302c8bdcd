#include "libcore/finetune/prefix_files.h"

#include <algorithm>
#include <vector>

#include "libcore/base/text.h"
#include "libcore/checkpoint/slice.h"
#include "libcore/finetune/adapter_writer.h"
#include "libcore/finetune/memory_tensors.h"
#include "libcore/generate/prefix.h"

namespace megalith {
namespace {

std::string name_of_layer(int64_t layer) {
  return concat("decoder.layers.", layer, ".self_attention.prefix");
}

/// The shape of one layer's parameter.
Shape layer_shape(const ModelConfig& config, int64_t positions) {
  return {2, config.kv_heads(), positions, config.kv_channels};
}

Json config_json(const ModelConfig& config, int64_t positions, const std::string& base) {
  const int64_t width = int64_t{config.kv_heads()} * config.kv_channels;
  return Json(Json::Object{{"auto_mapping", nullptr},
                           {"base_model_name_or_path", base},
                           {"encoder_hidden_size", width},
                           {"inference_mode", true},
                           {"num_attention_heads", config.kv_heads()},
                           {"num_layers", config.layers},
                           {"num_transformer_submodules", 1},
                           {"num_virtual_tokens", positions},
                           {"peft_type", kPeftPrefix},
                           {"prefix_projection", false},
                           {"revision", nullptr},
                           {"task_type", "CAUSAL_LM"},
                           {"token_dim", width}});
}

}  // namespace

TuningPlan prefix_plan(int64_t positions) {
  return {.frozen = true, .prefix = positions};
}

// KvPrefix has the shape [layers, 2, groups, positions, head], so our layers' parameters lie in it one after
// the other.
std::unique_ptr<TensorFile> prefix_params(const Adapter& adapter, const ModelConfig& config) {
  const KvPrefix prefix = read_prefix(adapter, config);
  const Shape shape = layer_shape(config, prefix.tokens);
  auto out = std::make_unique<MemoryTensors>(adapter.path());
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const auto begin = prefix.values.begin() + layer * shape.elements();
    out->put(name_of_layer(layer), shape, {begin, begin + shape.elements()});
  }
  return out;
}

// peft's tensor has the shape [positions, layers, 2, groups, head].
void write_prefix(const TensorFile& checkpoint, const ModelConfig& config, int64_t positions,
                  const AdapterOutput& output) {
  const Shape shape = layer_shape(config, positions);
  const int64_t rows = int64_t{2} * config.kv_heads(), head = config.kv_channels, layers = config.layers;
  std::vector<float> theirs(static_cast<size_t>(layers * shape.elements()));
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::vector<float> ours = read_whole(checkpoint, name_of_layer(layer), shape);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t position = 0; position < positions; ++position)
        std::copy_n(ours.begin() + (row * positions + position) * head, head,
                    theirs.begin() + ((position * layers + layer) * rows + row) * head);
  }
  const Shape flat{positions, layers * rows * head};
  AdapterWriter adapter(output.folder, {{"prompt_embeddings", DType::kF32, flat}});
  adapter.weights().write("prompt_embeddings", theirs.data(), theirs.size() * sizeof(float));
  adapter.finish(config_json(config, positions, output.base));
}

}  // namespace megalith
