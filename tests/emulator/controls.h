#pragma once

#include <stddef.h>

namespace megalith::emulator {

/// How often the emulated device was called since the process began.
struct CallCounts {
  long allocations = 0;     // of device memory and of page-locked host memory
  long events = 0;          // made
  long host_functions = 0;  // enqueued
  long waits = 0;  // of the host for a stream or an event, and copies of pageable memory to the device
  long copies_in = 0, copies_out = 0;
  long kernels = 0, products = 0;
  size_t peak_memory = 0;  // bytes of device memory
};

/// What tests set and read in the emulated device. A program's test sets the environment instead:
/// MEGALITH_EMULATOR_ORDER and MEGALITH_EMULATOR_MEMORY give the first two, and the counts are written as a
/// JSON object to the file MEGALITH_EMULATOR_COUNTS when the process ends.
struct Controls {
  /// Seeds the order in which the work of several streams runs. Where it is odd, the blocks of a kernel and
  /// the threads of a block run last to first.
  unsigned order = 1;
  size_t memory = size_t{16} << 30;  // bytes of the device
  bool never_done = false;           // the work of no stream ends, as far as the host can tell
  double work_seconds = 1e-5;        // of each kernel, product, copy and fill, by the device's clock
  CallCounts counts;
};

/// The controls of this process's device. The emulated plugin exports megalith_emulator_controls(), which
/// returns its address.
Controls& controls();

}  // namespace megalith::emulator
