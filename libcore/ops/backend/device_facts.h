#pragma once

#include <cstddef>

namespace megalith::cuda {

/// What is known of a device and of what drives it.
struct DeviceFacts {
  char name[256] = {};
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t memory = 0, l2 = 0;  // bytes
  bool ecc = false;
  int clock_mhz = 0, memory_clock_mhz = 0;  // the highest
  int driver = 0, runtime = 0;              // versions of CUDA: 13000 is 13.0
  size_t cublas = 0;                        // cuBLASLt's version: 130100 is 13.1.0
};

}  // namespace megalith::cuda
