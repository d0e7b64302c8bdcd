#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace megalith {

/// Wall time since `start`.
double seconds_since(std::chrono::steady_clock::time_point start);

/// The largest amount of physical memory, in bytes, that this process has used so far.
uint64_t peak_memory();

/// CPUs that this process may use, at least 1.
int usable_cpus();

/// The value of an environment variable; empty if it is not set.
std::string environment(const char* name);

/// The number of NVIDIA devices that this process would see. If CUDA_VISIBLE_DEVICES is set, its words are
/// counted as torch counts them (torch/cuda/__init__.py, _parse_visible_devices): up to the first word that
/// is not a device, whether the devices exist or not, and 0 if one is named twice. If it is not set, all
/// devices of the machine.
int visible_gpus();

}  // namespace megalith
