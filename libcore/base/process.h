#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace megalith {

/// Wall time since `start`.
double seconds_since(std::chrono::steady_clock::time_point start);

/// Bytes of memory that this process has held at most so far.
uint64_t peak_memory();

/// CPUs that this process may run on; at least 1.
int usable_cpus();

/// The value of an environment variable; empty where it is not set.
std::string environment(const char* name);

/// NVIDIA's devices that this process would see: as many as CUDA_VISIBLE_DEVICES names before the first one
/// that is invalid (CUDA C++ Programming Guide, environment variables), whether they are there or not; where
/// it is not set, those of the machine.
int visible_gpus();

}  // namespace megalith
