#pragma once

#include <chrono>
#include <functional>

#include "libcore/parallel/communicator.h"

namespace megalith {

struct ThreadCommOptions {
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // the longest wait for a peer
};

/// Runs `body` once for each rank, each on a thread of its own, with the communicator "world" between them,
/// and returns when all have ended. Tensors are in host memory. A rank that throws aborts the group: the
/// others stop with kComm at their next call. The first error is rethrown: its kind is the same, and its
/// message begins with "rank 3: ". Stopped is rethrown as it is. A group of one runs in the calling thread,
/// and its error is not changed.
void run_thread_ranks(int size, const ThreadCommOptions&,
                      const std::function<void(Communicator& world)>& body);

}  // namespace megalith
