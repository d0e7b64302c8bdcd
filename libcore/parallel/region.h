#pragma once

#include "libcore/parallel/communicator.h"
#include "libcore/tensor/arena.h"

namespace megalith {

/// The two doors of a tensor-parallel layer (f and g of Shoeybi et al. 2019; with sequence parallelism those
/// of Korthikanti et al. 2022). Rows are [s, b, h]; with sequence parallelism a rank holds s/tp of them
/// outside of the region and all inside. A group of one returns its argument; otherwise a result that is not
/// the argument is made in the given arena.
class Region {
 public:
  /// `tensor` must outlive the region. `sequence`: rows are cut along s outside.
  explicit Region(Communicator& tensor, bool sequence = false) : tensor_(&tensor), sequence_(sequence) {}

  /// Into the region: identity, or all rows gathered.
  ConstView enter(Stream&, Arena&, ConstView x) const;
  /// Gradient of enter: the ranks' summands added up, in place, because each rank's matrices saw the same
  /// input; or added up and scattered.
  View enter_grad(Stream&, Arena&, View dx) const;
  /// Out of the region: the ranks' summands added up, in place; or added up and scattered.
  View leave(Stream&, Arena&, View partial) const;
  /// Gradient of leave: identity, or all rows gathered.
  ConstView leave_grad(Stream&, Arena&, ConstView dy) const;

  Communicator& tensor() const { return *tensor_; }
  int rank() const { return tensor_->rank(); }
  int size() const { return tensor_->size(); }
  bool sequence() const { return sequence_ && size() > 1; }
  /// Rows of the sequence that this rank holds outside of the region, and the first one's place.
  int64_t rows_outside(int64_t s) const;
  int64_t first_row(int64_t s) const { return sequence() ? rank() * rows_outside(s) : 0; }

 private:
  ConstView gather(Stream&, Arena&, ConstView x) const;
  View sum(Stream&, Arena&, View partial) const;

  Communicator* tensor_;
  bool sequence_;
};

}  // namespace megalith
