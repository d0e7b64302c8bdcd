#pragma once

#include <chrono>
#include <cstdint>

namespace megalith {

/// Wall time since `start`.
double seconds_since(std::chrono::steady_clock::time_point start);

/// Bytes of memory that this process has held at most so far.
uint64_t peak_memory();

/// CPUs that this process may run on; at least 1.
int usable_cpus();

}  // namespace megalith
