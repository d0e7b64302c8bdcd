#pragma once

#include "libcore/parallel/communicator.h"
#include "libcore/tensor/row_positions.h"

namespace megalith {

/// Which positions rank `rank` of a context group of `size` holds, of a sequence of size * rows: of 2 * size
/// chunks of equal length the one of its number and, after it, the one of that number from the end, so that
/// causal attention costs every rank the same (Megatron's get_batch_on_this_cp_rank). kInternal for an odd
/// number of rows when size > 1.
RowPositions context_rows(int rank, int size, int64_t rows);

/// A sequence that is cut over a context group. What attention needs of the other ranks passes through here;
/// everything else is done row by row.
class ContextRegion {
 public:
  /// A group of one: all rows are here.
  ContextRegion() = default;
  /// The group's ranks in their order, and in the opposite one, as two communicators, which must outlive
  /// this: first chunks ascend with the ranks, second ones descend, so that gathered each stands at its
  /// place.
  ContextRegion(Communicator& ascending, Communicator& descending);

  int size() const { return ascending_ ? ascending_->size() : 1; }
  int rank() const { return ascending_ ? ascending_->rank() : 0; }
  /// Positions of this rank's `rows` rows.
  RowPositions rows(int64_t rows) const { return context_rows(rank(), size(), rows); }

  /// Completes `whole` [size * rows, ...], in which every rank has filled its rows at their positions.
  void gather(Stream&, View whole) const;
  /// The ranks' `whole`, each of all positions, added up: this rank's rows hold the sum, the others are used
  /// up.
  void sum(Stream&, View whole) const;

 private:
  /// Calls visit(communicator, half) for the first chunks' half of `whole` and for the second ones'.
  template <class Visit>
  void each_half(View whole, const Visit&) const;

  Communicator* ascending_ = nullptr;
  Communicator* descending_ = nullptr;
};

}  // namespace megalith
