#pragma once

#include "libcore/parallel/communicator.h"
#include "libcore/tensor/arena.h"

namespace megalith {

/// The entry and exit of a tensor-parallel layer (f and g of Shoeybi et al. 2019; with sequence parallelism
/// those of Korthikanti et al. 2022). Rows are [s, b, h]; with sequence parallelism a rank holds s/tp of them
/// outside the region and all of them inside. In a group of one every call returns its argument. Otherwise a
/// result that is not the argument is allocated in the given arena.
class Region {
 public:
  /// `tensor` must outlive the region. `sequence`: outside the region, rows are split along s.
  explicit Region(Communicator& tensor, bool sequence = false) : tensor_(&tensor), sequence_(sequence) {}

  /// Entry: returns `x`; with sequence parallelism, the rows of all ranks gathered.
  ConstView enter(Stream&, Arena&, ConstView x) const;
  /// Gradient of enter(): sums `dx` over the ranks, in place, since the matrices of all ranks had the same
  /// input. With sequence parallelism each rank gets only its own rows of the sum.
  View enter_grad(Stream&, Arena&, View dx) const;
  /// Exit: sums `partial` over the ranks, in place. With sequence parallelism each rank gets only its own
  /// rows of the sum.
  View leave(Stream&, Arena&, View partial) const;
  /// Gradient of leave(): returns `dy`; with sequence parallelism, the rows of all ranks gathered.
  ConstView leave_grad(Stream&, Arena&, ConstView dy) const;

  Communicator& tensor() const { return *tensor_; }
  int rank() const { return tensor_->rank(); }
  int size() const { return tensor_->size(); }
  bool sequence() const { return sequence_ && size() > 1; }
  /// The number of rows of the sequence that this rank holds outside the region, and the place of the first
  /// of them.
  int64_t rows_outside(int64_t s) const;
  int64_t first_row(int64_t s) const { return sequence() ? rank() * rows_outside(s) : 0; }

 private:
  ConstView gather(Stream&, Arena&, ConstView x) const;
  View sum(Stream&, Arena&, View partial) const;

  Communicator* tensor_;
  bool sequence_;
};

}  // namespace megalith
