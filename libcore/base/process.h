#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace megalith {

/// Wall time since `start`.
double seconds_since(std::chrono::steady_clock::time_point start);

/// The most bytes that this process has held.
uint64_t peak_memory();

/// CPUs that this process may use, at least 1.
int usable_cpus();

/// Empty where the variable is not set.
std::string environment(const char* name);

/// NVIDIA's devices that this process would see: those that CUDA_VISIBLE_DEVICES names, counted as torch does
/// (torch/cuda/__init__.py, _parse_visible_devices), whether they are there or not: up to the first word that
/// is no device, none where one is named twice. Where it is not set, those of the machine.
int visible_gpus();

}  // namespace megalith
