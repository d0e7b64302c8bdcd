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

void KvCache::truncate(int64_t past) {
  if (past < 0 || past > past_)
    fail(ErrorKind::kInternal, "key/value cache: cannot cut ", past_, " tokens to ", past);
  past_ = past;
}

}  // namespace megalith
