#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "libcore/config/parallel_config.h"
#include "libcore/model/param_store.h"
#include "libcore/parallel/groups.h"

namespace megalith {

/// Elements [begin, end) of a rank's flat values that this rank updates, and the element `at` where they
/// begin in its own state tensors (moments, masters, a ZeRO-2 gradient).
struct OwnRange {
  int64_t begin = 0, end = 0, at = 0;
  int64_t elements() const { return end - begin; }
};

/// What one rank's optimizer owns of the flat values: all of them, or one of `ranks` equal slices of each
/// bucket (ZeRO: Rajbhandari et al. 2020). The ranges are in the order of the values. They are adjacent in
/// the state, so that the state is one flat tensor.
class Shards {
 public:
  /// The store's buckets must be divisible by `ranks`.
  Shards(const ParamStore&, Sharding, int rank, int ranks);

  const std::vector<OwnRange>& own() const { return own_; }
  int64_t elements() const { return elements_; }  // of all ranges of this rank
  bool sharded() const { return ranks_ > 1; }
  /// This rank's slice of a bucket, in elements of the bucket; the whole bucket when nothing is sharded.
  OwnRange slice(const Bucket&) const;
  /// Distributes the values that each rank has updated to all of `copies`, the ranks that hold the same
  /// parameters. The store must be the one that the shards were made from.
  void gather(Stream&, const ParamStore&, Communicator& copies) const;

 private:
  int rank_, ranks_;
  std::vector<OwnRange> own_;
  int64_t elements_ = 0;
};

/// A range of a parameter that this rank's state covers.
struct OwnedPart {
  const Param* param = nullptr;
  int64_t first = 0;  // element of the parameter's local tensor
  int64_t at = 0;     // element of the state tensors
  int64_t elements = 0;
};
/// All parts that this rank's state covers, in order. A frozen parameter has none. Neither has a tied
/// parameter that uses the memory of another one, so nothing is updated twice.
std::vector<OwnedPart> owned_parts(const ParamTable&, const ParamStore&, const Shards&);

}  // namespace megalith
