#pragma once

#include <span>
#include <utility>
#include <vector>

#include "libcore/config/model_config.h"
#include "libcore/model/ctx.h"
#include "libcore/model/layers.h"
#include "libcore/model/params.h"

namespace megalith {

/// Keys and values of what a stage has read so far, for each layer.
class KvCache {
 public:
  struct Size {
    int64_t batch = 1, capacity = 0;  // number of sequences, and of tokens in each
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
  /// Counts `tokens` more tokens; kInternal beyond the capacity.
  void advance(int64_t tokens);
  /// Fills an empty cache of one sequence with `tokens` positions: `values` [layers, 2 (k, v), groups,
  /// tokens, head].
  void put(Stream&, int64_t tokens, std::span<const float> values);
  /// The first `tokens` positions of another cache, which must hold one sequence of the same model and type,
  /// and nothing else. kInternal if that cache has fewer, or they do not fit.
  void copy(Stream&, const KvCache& from, int64_t tokens);
  /// Forgets everything from position `past` on.
  void truncate(int64_t past);

 private:
  /// The first `tokens` rows of a group: [tokens, head].
  static View rows(const View& part, int64_t group, int64_t tokens);

  Size size_;
  int64_t past_ = 0;
  Arena arena_;
  std::vector<Layer> layers_;
};

/// The new rows [t, b, …] of a pass and the caches that keep them: one cache for all b sequences or, with t =
/// 1, one for each sequence, so that sequences of different lengths share a pass. The caches already count
/// the new rows.
struct Reading {
  std::span<KvCache* const> caches;
  int64_t t;

  /// Calls visit(cache, rows before the new ones, first sequence, end of the sequences) for each cache.
  template <class Visit>
  void each(const Visit& visit) const {
    int64_t first = 0;
    for (const KvCache* const cache : caches) {
      visit(*cache, cache->past() - t, first, first + cache->batch());
      first += cache->batch();
    }
  }
  /// The rows of sequences [first, last) in rows [t, b, …].
  template <class V>
  V part(const V& rows, int64_t first, int64_t last) const {
    if (last - first == rows.shape[1]) return rows;
    Shape of_one = rows.shape;  // [t = 1, b, …] is [b, 1, …]
    std::swap(of_one[0], of_one[1]);
    const V some = rows.as_shape(of_one).rows(first, last);
    Shape back = some.shape;
    std::swap(back[0], back[1]);
    return some.as_shape(back);
  }
};

}  // namespace megalith
