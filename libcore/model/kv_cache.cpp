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
        stream.copy(KvCache::rows(part, group, tokens), rows);
      }
  stream.synchronize();
}

View KvCache::rows(const View& part, int64_t group, int64_t tokens) {
  const int64_t groups = part.shape[1], capacity = part.shape[2], head = part.shape[3];
  return part.as_shape({groups * capacity, head}).rows(group * capacity, group * capacity + tokens);
}

void KvCache::copy(Stream& stream, const KvCache& from, int64_t tokens) {
  if (size_.batch != 1 || from.size_.batch != 1 || tokens > from.past_)
    fail(ErrorKind::kInternal, "key/value cache: cannot copy ", tokens, " tokens of ", from.past_, " of ",
         from.size_.batch, " sequences to ", size_.batch);
  truncate(0);
  advance(tokens);
  for (size_t i = 0; i < layers_.size(); ++i)
    for (int64_t group = 0; group < layers_[i].k.shape[1]; ++group) {
      stream.copy(rows(layers_[i].k, group, tokens), rows(from.layers_[i].k, group, tokens));
      stream.copy(rows(layers_[i].v, group, tokens), rows(from.layers_[i].v, group, tokens));
    }
}

void KvCache::truncate(int64_t past) {
  if (past < 0 || past > past_)
    fail(ErrorKind::kInternal, "key/value cache: cannot truncate ", past_, " tokens to ", past);
  past_ = past;
}

}  // namespace megalith
