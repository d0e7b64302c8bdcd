#include "libcore/ops/cuda/backend/cuda_backend.h"

// The functions that cuda_plugin.cpp looks up in libmegalith_cuda.so.

extern "C" {

/// The caller owns the result. Throws kDevice.
__attribute__((visibility("default"))) megalith::Backend* megalith_cuda_backend(
    int device, const megalith::LastWaits& waits) {
  return megalith::cuda::make_backend(device, waits).release();
}

/// Throws kDevice.
__attribute__((visibility("default"))) megalith::cuda::DeviceMemory megalith_cuda_memory(int device) {
  return megalith::cuda::memory_of(device);
}

/// Throws kDevice.
__attribute__((visibility("default"))) megalith::cuda::DeviceMemory megalith_cuda_memory_of(
    const megalith::Backend& backend) {
  return megalith::cuda::memory_of(megalith::cuda::device_of(backend));
}

/// Throws kDevice.
__attribute__((visibility("default"))) void megalith_cuda_facts(int device,
                                                                megalith::cuda::DeviceFacts& facts) {
  facts = megalith::cuda::facts_of(device);
}

/// Throws kDevice.
__attribute__((visibility("default"))) int megalith_cuda_devices() {
  return megalith::cuda::count_devices();
}

/// Throws kDevice.
__attribute__((visibility("default"))) void megalith_cuda_device_address(int device, std::string& address) {
  address = megalith::cuda::address_of(device);
}

__attribute__((visibility("default"))) void megalith_set_device_watch(megalith::Backend& backend,
                                                                      megalith::DeviceWatch* watch) {
  megalith::cuda::set_watch(backend, watch);
}
}
