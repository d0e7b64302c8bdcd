#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include <cuda_runtime.h>

#include "tests/emulator/streams.h"

/// Work that was captured: each piece comes after those that its stream had, or had waited for, before it.
/// Calls of other ranks come one after another, as they were captured: in another order on each rank they
/// could wait for each other, since all runs on one stream here.
struct EmulatedGraph {
  struct Node {
    EmulatedStream::Item item;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;

  /// The nodes in a random order of those that are allowed.
  std::vector<size_t> an_order(std::mt19937& random) const;
};

namespace megalith::emulator {

/// What streams are given from cudaStreamBeginCapture to cudaStreamEndCapture: nothing of it runs. A stream
/// that waits for a captured event is captured, too.
class Capture {
 public:
  explicit Capture(EmulatedStream* origin) : origin_(origin) { ends_[origin]; }

  void add(EmulatedStream* stream, EmulatedStream::Item item);
  /// The last pieces of a stream's work, for which what waits for its event waits.
  const std::vector<size_t>& ends_of(EmulatedStream* stream) { return ends_[stream]; }
  void wait(EmulatedStream* stream, const std::vector<size_t>& ends);
  /// Gives its streams back. Null if it was broken, or if a stream's work is not waited for by the origin's.
  std::unique_ptr<EmulatedGraph> finish(cudaError_t& status);
  /// A call that is not allowed makes the capture worthless.
  void break_off() { broken_ = true; }
  bool is_broken() const { return broken_; }
  bool began_on(EmulatedStream* stream) const { return origin_ == stream; }

 private:
  bool is_joined() const;

  EmulatedStream* origin_;
  std::unique_ptr<EmulatedGraph> graph_ = std::make_unique<EmulatedGraph>();
  std::map<EmulatedStream*, std::vector<size_t>> ends_;  // of each stream
  std::vector<size_t> outside_;                          // the last call of other ranks, if there is one
  bool broken_ = false;
};

/// The capture that the calling thread has begun; null: none. CUDA knows it by
/// cudaStreamCaptureModeThreadLocal, the only mode here.
std::shared_ptr<Capture>& capture_of_thread();
/// For calls that a capture forbids its thread: breaks it off and returns cudaErrorStreamCaptureUnsupported;
/// without a capture returns cudaSuccess.
cudaError_t refuse_in_capture();

}  // namespace megalith::emulator
