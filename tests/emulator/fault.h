#pragma once

#include <cuda_runtime.h>

namespace megalith::emulator {

/// What every call of the runtime returns: cudaSuccess, or Controls::fault once the device has failed. A
/// device that has failed runs no kernel, and does not recover.
cudaError_t health();
/// Whether this kernel, which is about to run, must not.
bool next_kernel_fails();
/// Whether Controls::fault refuses memory from now on.
bool refuses_memory();

}  // namespace megalith::emulator
