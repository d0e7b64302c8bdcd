#include "libcore/ops/cuda/graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include <cuda_runtime_api.h>

#include "libcore/ops/cuda/device_failure.h"

namespace megalith::cuda {
namespace {

struct FreeGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, FreeGraph>;

/// As require_success(), but clears the error, which the next launch would report otherwise: the work can be
/// launched without a graph.
void require_graph(cudaError_t status, const char* what) {
  if (status != cudaSuccess) cudaGetLastError();
  require_success(status, what);
}

}  // namespace

struct Graphs::Captured {
  Captured() = default;
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() { drop(); }
  void drop() {
    if (cudaGraphExec_t const freed = std::exchange(exec, nullptr); freed != nullptr)
      cudaGraphExecDestroy(freed);
    calls.clear();
  }

  cudaGraphExec_t exec = nullptr;
  std::map<Queue*, const void*> scratch;  // of the queues, which the work may use
  std::set<CapturedCalls*> calls;
};

/// A stream that captures. Ends the capture also when its work fails, since the stream does nothing else
/// meanwhile.
class Graphs::OpenCapture {
 public:
  OpenCapture(Graphs& graphs, Queue& queue) : graphs_(graphs), queue_(queue) {
    require_graph(cudaStreamBeginCapture(queue.stream(), cudaStreamCaptureModeThreadLocal),
                  "begin a capture");
    queue.set_recording(true);
    queues_.insert(&queue);
    graphs.open_ = this;
  }
  OpenCapture(const OpenCapture&) = delete;
  OpenCapture& operator=(const OpenCapture&) = delete;
  ~OpenCapture() { end(); }

  void add(CapturedCalls& calls, Queue& queue) {
    calls_.insert(&calls);
    queues_.insert(&queue);
  }
  /// Ends the capture, unless that was done.
  Graph end() {
    cudaGraph_t graph = nullptr;
    if (std::exchange(ended_, true)) return {};
    graphs_.open_ = nullptr;
    status_ = cudaStreamEndCapture(queue_.stream(), &graph);
    queue_.set_recording(false);
    cudaGetLastError();  // clears what the work has left, as require_graph() does
    return Graph(graph);
  }
  /// Ends the capture. The graph then has all memory of the device that it needs, so that its launches do not
  /// fail for want of some.
  std::shared_ptr<Captured> finish() {
    const Graph graph = end();
    require_success(status_, "capture work");
    auto captured = std::make_shared<Captured>();
    captured->calls = std::move(calls_);
    for (Queue* const queue : queues_) captured->scratch.emplace(queue, queue->workspace(0));
    require_graph(cudaGraphInstantiate(&captured->exec, graph.get(), 0), "make a graph of captured work");
    require_graph(cudaGraphUpload(captured->exec, queue_.stream()), "move a graph to the device");
    return captured;
  }

 private:
  Graphs& graphs_;
  Queue& queue_;
  std::set<Queue*> queues_;
  std::set<CapturedCalls*> calls_;
  bool ended_ = false;
  cudaError_t status_ = cudaSuccess;
};

std::shared_ptr<void> Graphs::capture(Queue& queue, const std::function<void()>& work) {
  queue.rethrow_error();
  OpenCapture open(*this, queue);
  work();
  std::shared_ptr<Captured> captured = open.finish();
  std::erase_if(with_calls_, [](const auto& made) { return made.expired(); });
  if (!captured->calls.empty()) with_calls_.push_back(captured);
  return captured;
}

bool Graphs::launch(Stream& stream, const std::shared_ptr<void>& captured) {
  const auto& made = *static_cast<const Captured*>(captured.get());
  const Queue& queue = queue_of(stream);
  queue.rethrow_error();
  const auto is_stale = [](const auto& of_queue) { return of_queue.second != of_queue.first->workspace(0); };
  if (made.exec == nullptr || std::any_of(made.scratch.begin(), made.scratch.end(), is_stale)) return false;
  require_graph(cudaGraphLaunch(made.exec, queue.stream()), "launch a graph");
  for (CapturedCalls* const calls : made.calls) calls->repeated(stream);
  return true;
}

bool Graphs::capture_calls(CapturedCalls& calls, Queue& queue) {
  if (open_ == nullptr) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  require_success(cudaStreamIsCapturing(queue.stream(), &status), "ask whether a stream captures");
  if (status == cudaStreamCaptureStatusNone) return false;
  open_->add(calls, queue);
  return true;
}

void Graphs::drop_calls() noexcept {
  if (open_ != nullptr) open_->end();
  for (const auto& made : std::exchange(with_calls_, {}))
    if (const std::shared_ptr<Captured> captured = made.lock()) captured->drop();
}

}  // namespace megalith::cuda
