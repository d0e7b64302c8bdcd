#include "tests/emulator/graphs.h"

#include <algorithm>
#include <utility>

#include "tests/emulator/controls.h"
#include "tests/emulator/fault.h"
#include "tests/emulator/report.h"

std::vector<size_t> EmulatedGraph::an_order(std::mt19937& random) const {
  std::vector<size_t> order, missing, ready;
  std::vector<std::vector<size_t>> followers(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    missing.push_back(nodes[i].after.size());
    if (nodes[i].after.empty()) ready.push_back(i);
    for (const size_t before : nodes[i].after) followers[before].push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const size_t next = ready.back();
    ready.pop_back();
    order.push_back(next);
    for (const size_t follower : followers[next])
      if (--missing[follower] == 0) ready.push_back(follower);
  }
  return order;
}

namespace megalith::emulator {

std::shared_ptr<Capture>& capture_of_thread() {
  thread_local std::shared_ptr<Capture> capture;
  return capture;
}

cudaError_t refuse_in_capture() {
  if (!capture_of_thread()) return cudaSuccess;
  capture_of_thread()->break_off();
  return cudaErrorStreamCaptureUnsupported;
}

void Capture::add(EmulatedStream* stream, EmulatedStream::Item item) {
  std::vector<size_t>& ends = ends_[stream];
  const size_t node = graph_->nodes.size();
  if (item.outside) wait(stream, std::exchange(outside_, {node}));
  graph_->nodes.push_back({std::move(item), std::exchange(ends, {node})});
}

void Capture::wait(EmulatedStream* stream, const std::vector<size_t>& ends) {
  std::vector<size_t>& mine = ends_[stream];
  mine.insert(mine.end(), ends.begin(), ends.end());
  std::sort(mine.begin(), mine.end());
  mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
}

/// Whether all work comes before the origin's last one.
bool Capture::is_joined() const {
  std::vector<bool> before(graph_->nodes.size(), false);
  for (const size_t end : ends_.at(origin_)) before[end] = true;
  for (size_t i = before.size(); i-- > 0;) {
    if (!before[i]) return false;
    for (const size_t earlier : graph_->nodes[i].after) before[earlier] = true;
  }
  return true;
}

std::unique_ptr<EmulatedGraph> Capture::finish(cudaError_t& status) {
  for (const auto& [stream, ends] : ends_) stream->capture = nullptr;
  status = broken_       ? cudaErrorStreamCaptureInvalidated
           : is_joined() ? cudaSuccess
                         : cudaErrorStreamCaptureUnjoined;
  std::unique_ptr<EmulatedGraph> graph = std::move(graph_);  // events may keep this object
  return status == cudaSuccess ? std::move(graph) : nullptr;
}

}  // namespace megalith::emulator

using namespace megalith::emulator;

// NOLINTBEGIN: names and signatures are CUDA's
struct EmulatedGraphExec {
  EmulatedGraph graph;
  int device;
};

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (mode != cudaStreamCaptureModeThreadLocal) end_with("a capture that other threads disturb");
  if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
  if (stream->capture || capture_of_thread()) return cudaErrorIllegalState;
  stream->capture = capture_of_thread() = std::make_shared<Capture>(stream);
  ++controls().counts.captures;
  return health();
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (stream == nullptr || !stream->capture) return cudaErrorIllegalState;
  if (stream->capture != capture_of_thread()) return cudaErrorStreamCaptureWrongThread;
  if (!stream->capture->began_on(stream)) return cudaErrorStreamCaptureUnmatched;
  const std::shared_ptr<Capture> capture = std::exchange(capture_of_thread(), nullptr);
  cudaError_t status = cudaSuccess;
  *graph = capture->finish(status).release();
  return status;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const bool captures = stream != nullptr && stream->capture;
  *status = !captures                      ? cudaStreamCaptureStatusNone
            : stream->capture->is_broken() ? cudaStreamCaptureStatusInvalidated
                                           : cudaStreamCaptureStatusActive;
  return health();
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  if (refuses_memory() || controls().graphless_device == chosen_device()) return cudaErrorMemoryAllocation;
  controls().counts.graph_nodes += static_cast<long>(graph->nodes.size());
  controls().counts.graphs += 1;
  controls().counts.most_graphs.raise_to(controls().counts.graphs);
  *exec = new EmulatedGraphExec{*graph, chosen_device()};
  return health();
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  return exec->device == Streams::get().device_of(stream) ? health() : cudaErrorInvalidResourceHandle;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  if (exec->device != Streams::get().device_of(stream)) return cudaErrorInvalidResourceHandle;
  ++controls().counts.graph_launches;
  Streams::get().enqueue_graph(stream, exec->graph);
  return health();
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return health();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  controls().counts.graphs += -1;
  delete exec;
  return health();
}
// NOLINTEND
