#include "libcore/ops/backend/shared_device.h"

#include <string_view>

#include "libcore/base/plugins/plugin.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {

bool is_on_cuda(const Stream& stream) {
  return std::string_view(stream.backend().name()) == "cuda";
}

void reduce_on_cuda(Stream& stream, const SharedReduction& reduction) {
  static auto* const kReduce =
      cuda_plugin().function<void(Stream&, const SharedReduction&)>("megalith_reduce_on_cuda");
  kReduce(stream, reduction);
}

}  // namespace megalith
