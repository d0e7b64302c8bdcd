// The functions of libmegalith_cuda.so that ops/backend/nccl_plugin.cpp looks up. Where the build found no
// nccl.h, the first of them says so, and the others are not reached.
#include <string>

#include "libcore/base/error.h"
#include "libcore/ops/backend/device_group.h"

#ifdef MEGALITH_HAS_NCCL
#include "libcore/ops/cuda/nccl/nccl_group.h"
#include "libcore/ops/cuda/nccl/nccl_library.h"
#endif

extern "C" {

#ifdef MEGALITH_HAS_NCCL

__attribute__((visibility("default"))) void megalith_open_nccl(const std::string& path) {
  megalith::cuda::open_nccl(path);
}

__attribute__((visibility("default"))) void megalith_new_nccl_id(std::string& id) {
  id = megalith::cuda::new_nccl_id();
}

/// The caller owns the result.
__attribute__((visibility("default"))) megalith::DeviceGroup* megalith_start_nccl_group(
    const megalith::DeviceGroupStart& start) {
  return megalith::cuda::start_nccl_group(start).release();
}

__attribute__((visibility("default"))) void megalith_nccl_version(std::string& version) {
  version = megalith::cuda::nccl().version();
}

#else

__attribute__((visibility("default"))) void megalith_open_nccl(const std::string&) {
  megalith::fail(
      megalith::ErrorKind::kDevice,
      "cuda: several ranks need NCCL, and this plugin was built without it: nccl.h 2.18 or later was not "
      "found; build Megalith again where NVIDIA's NCCL is (the package libnccl-dev, or the wheel "
      "nvidia-nccl-cu13)");
}

#endif

}  // extern "C"
