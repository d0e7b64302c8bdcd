#include "libcore/model/kv_cache.h"

#include "libcore/base/error.h"

namespace megalith {

KvCache::KvCache(Backend& backend, const ModelConfig& config, const Layers& layers, const TensorSplit& split,
                 const Size& size)
    : size_(size), arena_(Arena::counting("key/value cache")) {
  const Shape shape{size.batch, config.kv_heads() / split.size, size.capacity, config.kv_channels};
  const auto place = [&] {
    layers_.clear();
    for (int i = 0; i < layers.count; ++i)
      layers_.push_back({arena_.make(size.dtype, shape, "keys"), arena_.make(size.dtype, shape, "values")});
  };
  place();
  arena_ = make_arena(backend, "key/value cache", arena_.peak());
  place();
}

void KvCache::advance(int64_t tokens) {
  if (past_ + tokens > size_.capacity)
    fail(ErrorKind::kInternal, "key/value cache of ", size_.capacity, " tokens: ", past_, " are held, ",
         tokens, " more do not fit");
  past_ += tokens;
}

void KvCache::put(Stream& stream, int64_t tokens, std::span<const float> values) {
  const int64_t groups = layers_.empty() ? 0 : layers_[0].k.shape[1],
                head = layers_.empty() ? 0 : layers_[0].k.shape[3];
  const auto wanted = static_cast<int64_t>(layers_.size()) * 2 * groups * tokens * head;
  if (past_ != 0 || size_.batch != 1 || static_cast<int64_t>(values.size()) != wanted)
    fail(ErrorKind::kInternal, "key/value cache: ", values.size(), " numbers put, wanted ", wanted,
         " in an empty cache of one sequence");
  advance(tokens);
  Arena staging =
      make_arena(stream.backend(), "prefix", static_cast<size_t>(tokens * head) * sizeof(float) + 256);
  const View rows = staging.make(DType::kF32, {tokens, head}, "prefix");
  const float* from = values.data();
  for (const Layer& layer : layers_)
    for (const View& part : {layer.k, layer.v})
      for (int64_t group = 0; group < groups; ++group, from += tokens * head) {
        stream.from_host(rows, from);
        stream.copy(part.as_shape({groups * size_.capacity, head})
                        .rows(group * size_.capacity, group * size_.capacity + tokens),
                    rows);
      }
  stream.synchronize();
}

void KvCache::truncate(int64_t past) {
  if (past < 0 || past > past_)
    fail(ErrorKind::kInternal, "key/value cache: cannot cut ", past_, " tokens to ", past);
  past_ = past;
}

}  // namespace megalith
