// The functions of libmegalith_cuda.so that ops/backend/attention_plugin.cpp looks up.
#include <memory>
#include <string>

#include <cuda_runtime_api.h>

#include "libcore/base/error.h"
#include "libcore/ops/cuda/backend/cuda_backend.h"
#include "libcore/ops/cuda/cudnn/attention_trial.h"
#include "libcore/ops/cuda/cudnn/cudnn_attention.h"
#include "libcore/ops/cuda/device_failure.h"

namespace megalith::cuda {
namespace {

/// The backend's cuDNN, which is started at the first call. Throws kDevice.
CudnnAttention& cudnn_of(Backend& backend) {
  require_success(cudaSetDevice(device_of(backend)), "choose a device");
  std::unique_ptr<OtherAttention>& other = other_attention(backend);
  if (!other) {
    const cudnn::Library* const library = cudnn::library();
    if (library == nullptr) fail(ErrorKind::kDevice, "cuda: there is no cuDNN: ", cudnn::why_missing());
    other = std::make_unique<CudnnAttention>(*library);
  }
  return static_cast<CudnnAttention&>(*other);
}

/// Computes a kind by cuDNN as long as this lives, also if the trial of it fails.
struct Tried {
  Tried(CudnnAttention& attention, const AttentionKind& kind) : cudnn(attention), tried(kind) {
    cudnn.add(tried);
  }
  ~Tried() { cudnn.remove(tried); }
  Tried(const Tried&) = delete;
  Tried& operator=(const Tried&) = delete;
  CudnnAttention& cudnn;
  const AttentionKind& tried;
};

}  // namespace
}  // namespace megalith::cuda

extern "C" {

__attribute__((visibility("default"))) void megalith_open_cudnn(const std::string& path) {
  megalith::cuda::cudnn::open(path);
}

/// Throws kDevice.
__attribute__((visibility("default"))) void megalith_attention_library(const megalith::Backend& backend,
                                                                       megalith::AttentionLibrary& found,
                                                                       std::string* why_not) {
  namespace cuda = megalith::cuda;
  const cuda::cudnn::Library* const library = cuda::cudnn::library();
  found.gpu = cuda::facts_of(cuda::device_of(backend)).name;
  found.cudnn = library == nullptr ? 0 : static_cast<int64_t>(library->get_version());
  if (library == nullptr && why_not != nullptr) *why_not = cuda::cudnn::why_missing();
}

/// `trouble` gets how the results differ, or the message of what failed; nothing if they agree.
__attribute__((visibility("default"))) void megalith_trouble_with_cudnn(megalith::Backend& backend,
                                                                        const megalith::AttentionKind& kind,
                                                                        std::string& trouble) {
  namespace cuda = megalith::cuda;
  try {
    const cuda::Tried tried(cuda::cudnn_of(backend), kind);
    trouble = cuda::difference_of(backend, tried.cudnn, kind);
  } catch (const megalith::Error& error) {
    trouble = error.what();
  }
}

/// `trouble` gets the message of what failed.
__attribute__((visibility("default"))) void megalith_use_cudnn(megalith::Backend& backend,
                                                               const megalith::AttentionKind& kind,
                                                               std::string& trouble) {
  try {
    megalith::cuda::cudnn_of(backend).add(kind);
  } catch (const megalith::Error& error) {
    trouble = error.what();
  }
}
}
