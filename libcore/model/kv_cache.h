#pragma once

#include <vector>

#include "libcore/config/model_config.h"
#include "libcore/model/ctx.h"
#include "libcore/model/layers.h"
#include "libcore/model/params.h"

namespace megalith {

/// Keys and values of what a stage has read so far, per layer.
class KvCache {
 public:
  struct Size {
    int64_t batch = 1, capacity = 0;  // sequences, and tokens of each
    DType dtype = DType::kF32;        // of the model
  };
  KvCache(Backend&, const ModelConfig&, const Layers&, const TensorSplit&, const Size&);

  struct Layer {
    View k, v;  // [b, groups/tp, capacity, head]
  };
  const Layer& layer(size_t local) const { return layers_[local]; }
  int64_t past() const { return past_; }
  int64_t batch() const { return size_.batch; }
  int64_t capacity() const { return size_.capacity; }
  /// Takes `tokens` more into account; kInternal past the capacity.
  void advance(int64_t tokens);
  /// Forgets everything from position `past` on.
  void truncate(int64_t past);

 private:
  Size size_;
  int64_t past_ = 0;
  Arena arena_;
  std::vector<Layer> layers_;
};

}  // namespace megalith
