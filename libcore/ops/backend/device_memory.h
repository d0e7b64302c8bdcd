#pragma once

#include <cstddef>

namespace megalith::cuda {

/// Bytes of a device's memory.
struct DeviceMemory {
  size_t left;  // that a run can allocate: what is free, less 32 MiB for what the driver itself takes later
  size_t all;
};

}  // namespace megalith::cuda
