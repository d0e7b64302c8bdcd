#include "libcore/generate/prefix.h"

#include "libcore/base/error.h"

namespace megalith {

/// peft stores the keys and values as prompt_embeddings [tokens, layers, 2, groups, head].
KvPrefix read_prefix(const Adapter& adapter, const ModelConfig& config) {
  const StoredTensor& tensor = adapter.tensors().at("prompt_embeddings");
  const Shape shape = tensor.shape();
  const int64_t layers = config.layers, groups = config.kv_heads(), head = config.kv_channels;
  if (shape.rank != 2 || shape[1] != layers * 2 * groups * head)
    fail(ErrorKind::kData, adapter.path(), ": \"prompt_embeddings\" is ", shape, ", wanted [tokens, ",
         layers * 2 * groups * head, "] for the model's ", layers, " layers of ", groups, " heads of ", head);
  std::vector<float> stored(static_cast<size_t>(shape.elements()));
  adapter.tensors().read(Box::whole(tensor.name, shape), View{stored.data(), DType::kF32, shape});
  KvPrefix out{.tokens = shape[0], .values = std::vector<float>(stored.size())};
  const int64_t rows = layers * 2 * groups;
  for (int64_t token = 0; token < out.tokens; ++token)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < head; ++i)
        out.values[static_cast<size_t>((row * out.tokens + token) * head + i)] =
            stored[static_cast<size_t>((token * rows + row) * head + i)];
  return out;
}

}  // namespace megalith
