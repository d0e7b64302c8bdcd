#include "libcore/generate/prefix.h"

#include "libcore/base/error.h"

namespace megalith {

/// peft stores the keys and values as prompt_embeddings [tokens, layers, 2, groups, head].
KvPrefix read_prefix(const Adapter& adapter, const ModelConfig& config, const TensorSplit& split) {
  const StoredTensor& tensor = adapter.tensors().at("prompt_embeddings");
  const Shape shape = tensor.shape();
  const int64_t layers = config.layers, groups = config.kv_heads(), head = config.kv_channels;
  if (shape.rank != 2 || shape[1] != layers * 2 * groups * head)
    fail(ErrorKind::kData, adapter.path(), ": \"prompt_embeddings\" is ", shape, ", wanted [tokens, ",
         layers * 2 * groups * head, "] for the model's ", layers, " layers of ", groups, " heads of ", head);
  std::vector<float> stored(static_cast<size_t>(shape.elements()));
  adapter.tensors().read(Box::whole(tensor.name, shape), View{stored.data(), DType::kF32, shape});
  const int64_t own = groups / split.size, first = own * split.rank, parts = layers * 2;
  KvPrefix out{.tokens = shape[0], .values = {}};
  out.values.reserve(stored.size() / static_cast<size_t>(split.size));
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t group = first; group < first + own; ++group)
      for (int64_t token = 0; token < out.tokens; ++token) {
        const auto from = stored.begin() + ((token * parts + part) * groups + group) * head;
        out.values.insert(out.values.end(), from, from + head);
      }
  return out;
}

}  // namespace megalith
