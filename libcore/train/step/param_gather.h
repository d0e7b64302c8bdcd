#pragma once

#include <cstddef>
#include <vector>

#include "libcore/model/ctx.h"
#include "libcore/model/param_store.h"
#include "libcore/parallel/communicator.h"
#include "libcore/train/step/shards.h"

namespace megalith {

/// Sends the parameters that each rank has updated to the ranks that hold the same ones, bucket by bucket, in
/// the order in which a forward pass reads them. On a stream of its own this happens beside the next forward
/// pass, each unit of which waits for its own parameters. Without sharding there is nothing to send. Refers
/// to store, shards, copies and stream, which must outlive it.
class ParamGather final : public ParamGate {
 public:
  /// `copies`: the ranks that hold the same parameters. `stream`: on which it sends; it may be the one that
  /// computes.
  ParamGather(const ParamTable&, const ParamStore&, const Shards&, Communicator& copies, Stream& stream);

  /// Sends the values that the work enqueued on `compute` so far has updated.
  void begin(Stream& compute);
  /// Later work on `compute` finds this unit's parameters as all ranks have updated them.
  void unit_begins(Stream& compute, int unit) override;
  /// The same for all parameters.
  void finish(Stream& compute);

 private:
  /// A bucket and the units whose forward passes read its parameters, of which a tied one has several.
  struct Part {
    const Bucket* bucket;
    std::vector<int> readers;
    Event done = {};  // of the last gather; without `native` nothing needs to wait for it
  };
  void gather(const Bucket&);
  static void await(Stream& compute, Part&);

  const ParamStore& store_;
  const Shards& shards_;
  Communicator& copies_;
  Stream& stream_;
  std::vector<Part> parts_;  // in the order of a forward pass
};

}  // namespace megalith
