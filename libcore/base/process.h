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

}  // namespace megalith
