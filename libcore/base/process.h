#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace megalith {

/// Wall time since `start`.
double seconds_since(std::chrono::steady_clock::time_point start);

/// Bytes of memory that this process has held at most so far.
uint64_t peak_memory();

/// Moves a thread that was just started to a CPU of its own: the `nth` behind the caller's of those that it
/// may use, from where the system moves it as it likes. For threads that are busy from their beginning: they
/// might wait behind the caller until the scheduler's next tick, a CPU asleep beside them, where a virtual
/// CPU that sleeps looks as if its host had taken it away.
void begin_elsewhere(std::thread& thread, size_t nth);

}  // namespace megalith
