#pragma once

#include "libcore/parallel/kernels_reduce.h"
#include "libcore/tensor/device.h"

namespace megalith {

/// How a rank does its part of a call: at once, in host memory; or by a stream of the device that the ranks
/// share, where the work of one rank waits for that of another by events.
class RankWork {
 public:
  /// In host memory.
  RankWork() = default;
  /// By the stream, which must outlive the object. It is one of a device.
  explicit RankWork(Stream& stream) : stream_(&stream) {}

  /// Does nothing if both are the same memory.
  void copy(const View& to, const ConstView& from) const;
  void reduce(const SliceReduction&) const;
  /// What follows begins after the event's work; an event of host memory has none.
  void wait(const Event& event) const;
  /// When what came before is done.
  Event done() const;

 private:
  Stream* stream_ = nullptr;
};

}  // namespace megalith
