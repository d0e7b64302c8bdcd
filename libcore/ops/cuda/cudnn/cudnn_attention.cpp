#include "libcore/ops/cuda/cudnn/cudnn_attention.h"

#include "libcore/base/error.h"
#include "libcore/ops/backend/cuda_workspaces.h"

namespace megalith::cuda {
namespace {

/// Refuses what NVIDIA's cudnn-frontend refuses for this version or computes by another graph, since a trial
/// with one set of numbers may miss the version's errors.
void require_no_known_error(const cudnn::Library& library, const AttentionKind& kind) {
  const size_t version = library.get_version();
  if (version == 91000 || version == 91001)
    fail(ErrorKind::kDevice, "cuDNN ", library.version(),
         ": NVIDIA reports errors in its attention; install 9.10.2 or later");
  constexpr int64_t kTile = 128;
  if (version <= 91500 && kind.rows % kTile != 0)
    fail(ErrorKind::kDevice, "cuDNN ", library.version(), ": the gradient of ", kind.rows,
         " positions, not a multiple of ", kTile, ", needs a version later than 9.15.0");
}

}  // namespace

CudnnAttention::CudnnAttention(const cudnn::Library& library) : library_(library) {
  library_.require(library_.create(&handle_), "start cuDNN");
}

CudnnAttention::~CudnnAttention() {
  sdpas_.clear();
  library_.destroy(handle_);
}

void CudnnAttention::add(const AttentionKind& kind) {
  require_no_known_error(library_, kind);
  auto made = std::make_unique<cudnn::Sdpa>(library_, handle_, kind);
  const std::lock_guard lock(mutex_);
  sdpas_.insert_or_assign(kind, std::move(made));
}

void CudnnAttention::remove(const AttentionKind& kind) {
  const std::lock_guard lock(mutex_);
  sdpas_.erase(kind);
}

template <class Op>
bool CudnnAttention::run_op(Queue& queue, const Op& op) {
  const auto kind = attention_kind(op);
  if (!kind) return false;
  const std::lock_guard lock(mutex_);
  const auto found = sdpas_.find(*kind);
  if (found == sdpas_.end()) return false;
  library_.require(library_.set_stream(handle_, queue.stream()), "choose a stream of cuDNN");
  found->second->run(op, queue.workspace(workspace_of(op)));
  return true;
}

bool CudnnAttention::run(Queue& queue, const Attention& op) {
  return run_op(queue, op);
}
bool CudnnAttention::run(Queue& queue, const AttentionGrad& op) {
  return run_op(queue, op);
}

}  // namespace megalith::cuda
