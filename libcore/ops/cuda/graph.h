#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "libcore/ops/cuda/queue.h"

namespace megalith::cuda {

/// A group of devices whose calls are part of captured work.
class CapturedCalls {
 public:
  virtual ~CapturedCalls() = default;
  /// The captured calls were enqueued on the stream once more.
  virtual void repeated(Stream&) = 0;
};

/// The CUDA graphs of a backend. One thread uses it.
class Graphs {
 public:
  Graphs() = default;
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  /// Captures what `work` enqueues on the queue's stream, for the current device (see
  /// WorkRecorder::record_work). Threads other than the calling one may use CUDA meanwhile. Throws kInternal
  /// if CUDA cannot capture the work, kDevice if it cannot make a graph of it, and what `work` throws.
  std::shared_ptr<void> capture(Queue&, const std::function<void()>& work);
  /// Enqueues what was captured on this stream, unless it was dropped, or a queue that it uses has other
  /// scratch memory than then. Returns whether it did. Throws kDevice.
  static bool launch(Stream&, const std::shared_ptr<void>&);

  /// Whether a capture is under way. CUDA then allows no question about events.
  bool is_capturing() const { return open_ != nullptr; }
  /// Whether the queue's stream takes part in the capture that is under way. Then its calls of a group do,
  /// which may use the queue's scratch memory.
  bool capture_calls(CapturedCalls&, Queue&);
  /// Before a communicator of NCCL ends, which waits until no graph has calls of it: frees all graphs that
  /// have calls of groups, and gives up the capture that is under way. A graph that runs is freed when it has
  /// run.
  void drop_calls() noexcept;

 private:
  class OpenCapture;
  struct Captured;
  OpenCapture* open_ = nullptr;
  std::vector<std::weak_ptr<Captured>> with_calls_;
};

}  // namespace megalith::cuda
