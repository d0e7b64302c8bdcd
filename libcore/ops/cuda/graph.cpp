#include "libcore/ops/cuda/graph.h"

#include <type_traits>

#include <cuda_runtime_api.h>

#include "libcore/ops/cuda/device_failure.h"

namespace megalith::cuda {
namespace {

struct FreeGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
struct Captured {
  cudaGraphExec_t exec = nullptr;
  const void* scratch;  // that of the queue, which the work uses
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, FreeGraph>;

/// As require_success(), but clears the error, which the next launch would report otherwise: the work can be
/// launched without a graph.
void require_graph(cudaError_t status, const char* what) {
  if (status != cudaSuccess) cudaGetLastError();
  require_success(status, what);
}

/// A stream that captures. Ends the capture also when its work fails, since the stream does nothing else
/// meanwhile.
class OpenCapture {
 public:
  explicit OpenCapture(Queue& queue) : queue_(queue) {
    require_graph(cudaStreamBeginCapture(queue.stream(), cudaStreamCaptureModeThreadLocal),
                  "begin a capture");
    queue.set_recording(true);
  }
  OpenCapture(const OpenCapture&) = delete;
  OpenCapture& operator=(const OpenCapture&) = delete;
  ~OpenCapture() {
    if (!ended_) end();
  }
  Graph finish() {
    Graph graph = end();
    require_success(status_, "capture work");
    return graph;
  }

 private:
  Graph end() {
    cudaGraph_t graph = nullptr;
    ended_ = true;
    status_ = cudaStreamEndCapture(queue_.stream(), &graph);
    queue_.set_recording(false);
    cudaGetLastError();  // clears what the work has left, as require_graph() does
    return Graph(graph);
  }

  Queue& queue_;
  bool ended_ = false;
  cudaError_t status_ = cudaSuccess;
};

}  // namespace

std::shared_ptr<void> capture(Queue& queue, const std::function<void()>& work) {
  queue.rethrow_error();
  OpenCapture open(queue);
  work();
  const Graph graph = open.finish();
  const std::shared_ptr<Captured> captured(new Captured{.scratch = queue.workspace(0)}, [](Captured* made) {
    if (made->exec != nullptr) cudaGraphExecDestroy(made->exec);
    delete made;
  });
  require_graph(cudaGraphInstantiate(&captured->exec, graph.get(), 0), "make a graph of captured work");
  return captured;
}

bool launch_captured(Queue& queue, const std::shared_ptr<void>& captured) {
  const auto* const made = static_cast<const Captured*>(captured.get());
  queue.rethrow_error();
  if (made->scratch != queue.workspace(0)) return false;
  require_graph(cudaGraphLaunch(made->exec, queue.stream()), "launch a graph");
  return true;
}

}  // namespace megalith::cuda
