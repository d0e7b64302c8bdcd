#pragma once

#include <span>
#include <utility>
#include <vector>

#include "libcore/config/model_config.h"
#include "libcore/model/ctx.h"
#include "libcore/model/layers.h"
#include "libcore/model/params.h"

namespace megalith {

/// The keys and values of the tokens that a stage has processed so far, for each of its layers.
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
  /// Adds `tokens` to past(); kInternal beyond the capacity.
  void advance(int64_t tokens);
  /// Fills an empty cache of one sequence with `tokens` positions: `values` [layers, 2 (k, v), groups,
  /// tokens, head].
  void put(Stream&, int64_t tokens, std::span<const float> values);
  /// Replaces the contents by the first `tokens` positions of `from`. Both caches must be of the same model
  /// and dtype. kInternal unless each cache holds one sequence, `from` has at least `tokens` positions and
  /// they fit into this cache.
  void copy(Stream&, const KvCache& from, int64_t tokens);
  /// Drops the positions from `past` on; kInternal unless past <= past().
  void truncate(int64_t past);

 private:
  /// The first `tokens` rows of a group: [tokens, head].
  static View rows(const View& part, int64_t group, int64_t tokens);

  Size size_;
  int64_t past_ = 0;
  Arena arena_;
  std::vector<Layer> layers_;
};

/// Rows that follow the first `past` positions of a cache.
struct Branch {
  int64_t past, rows;
  size_t cache = 0;  // its number in Reading::caches
};

/// One pass over t new rows of each of b sequences, and the caches for their keys and values. There is one
/// cache for all b sequences or, with t = 1, one for each sequence, so that sequences of different lengths
/// share a pass. past() of each cache already includes the new rows.
///
/// Or a pass over `branches`, with b = 1, and t the sum of their rows: beginnings of several texts, each with
/// a cache of its own, or the branches of a tree of texts, which use one cache, in their order. Each branch
/// writes its keys and values from its `past` on, over those of earlier branches, and sees only what is
/// before. So a text may branch off any earlier text of which the cache still holds the shared beginning,
/// even within the pass. past() of the caches is not used.
struct Reading {
  std::span<KvCache* const> caches;
  int64_t t;
  std::span<const Branch> branches = {};

  /// Calls visit(cache, past, first, last) for each cache: `past` counts the rows before the new ones, and
  /// the cache holds sequences [first, last). With branches, once for each: it has the rows [first, last).
  template <class Visit>
  void each(const Visit& visit) const {
    int64_t first = 0;
    for (const Branch& branch : branches) {
      visit(*caches[branch.cache], branch.past, first, first + branch.rows);
      first += branch.rows;
    }
    if (!branches.empty()) return;
    for (const KvCache* const cache : caches) {
      visit(*cache, cache->past() - t, first, first + cache->batch());
      first += cache->batch();
    }
  }
  /// The part of `rows` [t, b, …] that belongs to the sequences [first, last). These must be all sequences
  /// unless t = 1. With branches, the rows [first, last).
  template <class V>
  V part(const V& rows, int64_t first, int64_t last) const {
    if (!branches.empty()) return rows.rows(first, last);
    if (last - first == rows.shape[1]) return rows;
    Shape of_one = rows.shape;  // since t = 1, [1, b, …] can be viewed as [b, 1, …]
    std::swap(of_one[0], of_one[1]);
    const V some = rows.as_shape(of_one).rows(first, last);
    Shape back = some.shape;
    std::swap(back[0], back[1]);
    return some.as_shape(back);
  }
};

}  // namespace megalith
