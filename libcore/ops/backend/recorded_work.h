#pragma once

#include <functional>
#include <memory>

#include "libcore/tensor/device.h"

namespace megalith {

/// A second base class of a Backend whose device can repeat work that was enqueued once, as CUDA's does with
/// graphs. Found by dynamic_cast. A plugin derives from this class and links no .cpp file of the core for it,
/// so no function may have its body in one.
class WorkRecorder {
 public:
  virtual ~WorkRecorder() = default;
  /// Work that repeat() enqueues; it is freed when no copy is left.
  using Recorded = std::shared_ptr<void>;
  /// Calls `work`, which enqueues work on the stream. None of it runs. The work is recorded with the
  /// addresses and numbers that it was given, whatever its memory holds later. It may use other streams that
  /// wait for this one and that this one waits for at the end. It may not allocate, copy from or to the host,
  /// enqueue host work, wait for earlier events, or wait for the device. It may have calls of groups of
  /// devices (DeviceGroup) if all ranks of a group record the same calls; recording runs none of them.
  /// Throws what `work` throws, kInternal if it did what it may not, and kDevice if the device lacks memory
  /// to keep it.
  virtual Recorded record_work(Stream& stream, const std::function<void()>& work) = 0;
  /// Enqueues the recorded work on the stream on which it was recorded; if it has calls of groups, their
  /// other ranks repeat theirs, too. Returns false, and enqueues nothing, if scratch memory that the work
  /// uses has been replaced by a larger block since, or a group of its calls has ended. Throws kDevice; then
  /// nothing was enqueued, either.
  virtual bool repeat(Stream& stream, const Recorded&) = 0;
};

}  // namespace megalith
