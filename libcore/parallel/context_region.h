#pragma once

#include "libcore/parallel/communicator.h"
#include "libcore/tensor/row_positions.h"

namespace megalith {

/// The positions of rank `rank` in a context group of `size` ranks, for a sequence of size * rows positions.
/// The sequence is split into 2 * size chunks of equal length; rank r has chunks r and 2 * size - 1 - r, so
/// that causal attention costs every rank the same (Megatron's get_batch_on_this_cp_rank). kInternal for an
/// odd number of rows when size > 1.
RowPositions context_rows(int rank, int size, int64_t rows);

/// A sequence that is split over a context group. Attention exchanges data with the other ranks through it;
/// all other layers work row by row and need no exchange.
class ContextRegion {
 public:
  /// A group of one, which has all rows.
  ContextRegion() = default;
  /// Two communicators of the same ranks, one in rank order and one in reverse; they must outlive this
  /// object. The first chunks ascend with the ranks and the second chunks descend, so each half of the
  /// sequence is gathered in the order of its positions.
  ContextRegion(Communicator& ascending, Communicator& descending);

  int size() const { return ascending_ ? ascending_->size() : 1; }
  int rank() const { return ascending_ ? ascending_->rank() : 0; }
  /// The positions of this rank's `rows` rows.
  RowPositions rows(int64_t rows) const { return context_rows(rank(), size(), rows); }

  /// Fills the other ranks' rows of `whole` [size * rows, ...]. Every rank has already filled its own rows.
  void gather(Stream&, View whole) const;
  /// Adds up the ranks' `whole` tensors, each of which has all positions. This rank's rows then hold the sum;
  /// the other rows are overwritten.
  void sum(Stream&, View whole) const;

 private:
  /// Calls visit(communicator, half) for the half of `whole` that holds the first chunks, then for the other.
  template <class Visit>
  void each_half(View whole, const Visit&) const;

  Communicator* ascending_ = nullptr;
  Communicator* descending_ = nullptr;
};

}  // namespace megalith
