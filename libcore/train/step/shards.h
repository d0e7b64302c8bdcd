#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "libcore/config/parallel_config.h"
#include "libcore/model/param_store.h"
#include "libcore/parallel/groups.h"

namespace megalith {

/// A range that this rank updates: elements [begin, end) of its flat values. In its own state tensors
/// (moments, masters, a ZeRO-2 gradient) the range begins at element `at`.
struct OwnRange {
  int64_t begin = 0, end = 0, at = 0;
  int64_t elements() const { return end - begin; }
};

/// The ranges of the flat values that one rank's optimizer owns: all of them, or one of `ranks` equal slices
/// of each bucket (ZeRO: Rajbhandari et al. 2020). The ranges are in the order of the values. In the state
/// they are adjacent, so the state is one flat tensor.
class Shards {
 public:
  /// The store's buckets must be divisible by `ranks`.
  Shards(const ParamStore&, Sharding, int rank, int ranks);

  const std::vector<OwnRange>& own() const { return own_; }
  int64_t elements() const { return elements_; }  // number of elements in all ranges of this rank
  bool sharded() const { return ranks_ > 1; }
  /// The slice of a bucket that this rank owns, counted from the bucket's first element. Without sharding it
  /// is the whole bucket.
  OwnRange slice(const Bucket&) const;

 private:
  int rank_, ranks_;
  std::vector<OwnRange> own_;
  int64_t elements_ = 0;
};

/// A range of a parameter that this rank's state covers.
struct OwnedPart {
  const Param* param = nullptr;
  int64_t first = 0;  // first element in the parameter's local tensor
  int64_t at = 0;     // first element in the state tensors
  int64_t elements = 0;
};
/// All ranges that this rank's state covers, in order. Leaves out frozen parameters, and tied parameters that
/// use the memory of another one, so that nothing is updated twice.
std::vector<OwnedPart> owned_parts(const ParamTable&, const ParamStore&, const Shards&);

}  // namespace megalith
