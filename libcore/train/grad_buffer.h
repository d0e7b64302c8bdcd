#pragma once

#include "libcore/model/param_store.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// The gradients of a rank, one flat fp32 tensor that lies in the ParamStore: a backward pass adds to it, the
/// optimizer reads it. Refers to the store and the communicator, which must outlive it.
class GradBuffer {
 public:
  /// `data`: the ranks that hold the same parameters. kInternal when the store has no gradients.
  GradBuffer(const ParamStore&, Communicator& data);

  void zero(Stream&);
  /// Sums over the data-parallel ranks.
  void reduce(Stream&);
  /// Adds the sum of squares over all parameters, tied ones once, to `sum` [1] f64, in a fixed order.
  void add_squares(Stream&, View sum) const;
  View flat() const { return grads_; }  // [elements] f32

 private:
  View grads_;
  Communicator& data_;
};

}  // namespace megalith
