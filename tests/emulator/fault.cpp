#include "tests/emulator/fault.h"

#include <atomic>

#include "tests/emulator/controls.h"

namespace megalith::emulator {
namespace {

std::atomic<long> kernels_run = 0;

bool is_of_memory() {
  return controls().fault == cudaErrorMemoryAllocation;
}

}  // namespace

cudaError_t health() {
  const bool lost = controls().fault != 0 && !is_of_memory() && kernels_run >= controls().fault_after;
  return lost ? static_cast<cudaError_t>(controls().fault) : cudaSuccess;
}

bool next_kernel_fails() {
  if (health() != cudaSuccess) return true;
  ++kernels_run;
  return false;
}

bool refuses_memory() {
  return is_of_memory() && controls().counts.allocations > controls().fault_after;
}

}  // namespace megalith::emulator
