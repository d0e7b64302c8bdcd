#pragma once

#include <functional>
#include <memory>

#include "libcore/ops/cuda/queue.h"

namespace megalith::cuda {

/// Captures what `work` enqueues on the queue's stream, for the current device (see
/// WorkRecorder::record_work). Threads other than the calling one may use CUDA meanwhile. Throws kInternal if
/// CUDA cannot capture the work, kDevice if it cannot make a graph of it, and what `work` throws.
std::shared_ptr<void> capture(Queue&, const std::function<void()>& work);
/// Enqueues what was captured on this queue, unless the queue has other scratch memory than then. Returns
/// whether it did. Throws kDevice.
bool launch_captured(Queue&, const std::shared_ptr<void>&);

}  // namespace megalith::cuda
