#pragma once

#include <chrono>
#include <functional>

#include "libcore/parallel/communicator.h"

namespace megalith {

struct ThreadCommOptions {
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // the longest wait for a peer
};

/// Runs `body` once for each rank, each on a thread of its own, with the communicator "world" between them,
/// and returns when all have ended. A rank that throws aborts the group: the others stop with kComm at their
/// next call. The first error is rethrown: its kind is the same, and its message begins with "rank 3: ".
/// Stopped is rethrown as it is. A group of one runs in the calling thread, and its error is not changed.
///
/// Tensors are in host memory, or all in that of one CUDA device, on which each rank has a backend of its
/// own. There the hosts meet in a call, and the work that it enqueues waits for the other ranks' by events;
/// reductions have the same bits as in host memory. Memory that slots lie in, and its backend, must outlive
/// the communicator.
void run_thread_ranks(int size, const ThreadCommOptions&,
                      const std::function<void(Communicator& world)>& body);

}  // namespace megalith
