#pragma once

#include "libcore/ops/cuda/kernel_tools.h"

/// What attention's kernels share: where a head lies, what its queries see, its dropout mask.
namespace megalith::cuda {

/// One query head of one sequence. Computes offsets when they are asked for, so that they take no registers.
struct HeadPlace {
  int number, sequence, head, group, slot;  // slot: within the group
  __device__ HeadPlace(const AttentionShape& s, int64_t which)
      : number(static_cast<int>(which)),
        sequence(number / static_cast<int>(s.groups * s.r)),
        head(number % static_cast<int>(s.groups * s.r)),
        group(head / static_cast<int>(s.r)),
        slot(head % static_cast<int>(s.r)) {}
  /// The head that is `heads` further in the same group.
  __device__ HeadPlace plus(int heads) const {
    HeadPlace place = *this;
    place.number += heads;
    place.head += heads;
    place.slot += heads;
    return place;
  }
  /// Its offset in the tensors of queries, of keys or values, and of outputs, in row 0; and in lse and delta.
  __device__ int64_t q(const AttentionShape& s) const {
    return sequence * s.q.sequence + group * s.q.group + slot * s.head;
  }
  __device__ int64_t kv(const AttentionShape& s) const {
    return sequence * s.kv.sequence + group * s.kv.group;
  }
  __device__ int64_t out(const AttentionShape& s) const { return number * s.head; }
  __device__ int64_t row(const AttentionShape& s) const { return number * s.queries; }
};

/// Dropout factors of the probabilities of one head.
struct HeadMask {
  MaskKey key;
  int64_t sample;
  RowSpans rows;
  uint64_t first_column;
  __device__ HeadMask(const AttentionMask& m, const HeadPlace& place, int64_t keys)
      : key(m.key),
        sample(m.key.scale == 0 ? 0 : m.samples[place.sequence]),
        rows(m.rows),
        first_column(static_cast<uint64_t>((m.first_head + place.head) * keys)) {}
  __device__ float at(int64_t query, int64_t column) const {
    return key.scale == 0
               ? 1.0f
               : mask_at(key, sample, rows.at(query), first_column + static_cast<uint64_t>(column));
  }
};

struct KeyRange {
  int first, last;
  __device__ bool has(auto key) const { return key >= first && key <= last; }
};

/// The keys that some query from `first` to `last` sees.
__device__ inline KeyRange keys_of(const AttentionShape& s, const HeadPlace& place, int64_t first,
                                   int64_t last) {
  return {static_cast<int>(s.first_key(first, place.sequence)), static_cast<int>(s.last_key(last))};
}
/// Those that a query sees; none if there is no such query.
__device__ inline KeyRange keys_of(const AttentionShape& s, const HeadPlace& place, int64_t query) {
  return query < s.queries ? keys_of(s, place, query, query) : KeyRange{0, -1};
}

/// A head with its mask.
struct HeadView {
  const AttentionShape& shape;
  HeadPlace place;
  HeadMask mask;
  __device__ HeadView(const AttentionShape& s, const AttentionMask& m, int64_t number)
      : shape(s), place(s, number), mask(m, place, s.keys) {}
};

}  // namespace megalith::cuda
