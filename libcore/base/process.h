#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace megalith {

/// Wall time since `start`.
double seconds_since(std::chrono::steady_clock::time_point start);

/// The largest number of bytes that this process has held.
uint64_t peak_memory();

/// CPUs that this process may use, at least 1.
int usable_cpus();

/// Empty if the variable is not set.
std::string environment(const char* name);

/// The NVIDIA devices that this process would see: those that CUDA_VISIBLE_DEVICES names, whether they exist
/// or not, counted as torch does (torch/cuda/__init__.py, _parse_visible_devices): up to the first word that
/// is not a device, and none if one is named twice. If the variable is not set, all devices of the machine.
int visible_gpus();

}  // namespace megalith
