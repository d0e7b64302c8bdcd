#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace megalith {

// An idle virtual CPU accrues steal time, so the scheduler may queue a thread that begins or wakes on a busy
// CPU and leave it there, until the next tick (up to 4 ms at the start of preprocess) or for 10 to 60 ms (in
// a tenth of its runs with two workers).

/// Moves a thread that was just started to a CPU of its own: the `nth` after the caller's of those that it
/// may use, from where the system moves it as it likes. For threads that are busy from their beginning.
void begin_elsewhere(std::thread& thread, size_t nth);

/// Keeps the busy threads of one job on different CPUs, because the scheduler does not always (above). Any
/// number of threads may call at once.
class ThreadSpread {
 public:
  explicit ThreadSpread(size_t threads) : seats_(threads) {}

  /// The calling thread, the job's `number`th from 0, has something to do. When another one that has was last
  /// seen on the same CPU, it goes to one where none was, if it may use such a one, and may be moved from
  /// there by the system. Not more often than each kRest. Returns whether it went.
  bool begin_work(size_t number);
  void end_work(size_t number) { seats_[number].cpu.store(kNoCpu, std::memory_order_relaxed); }

  static constexpr std::chrono::milliseconds kRest{4};

 private:
  static constexpr int kNoCpu = -1;
  struct alignas(64) Seat {
    std::atomic<int> cpu{kNoCpu};
    std::chrono::steady_clock::time_point left{};  // for another CPU
  };
  bool is_taken(int cpu, size_t by_other_than) const;

  std::vector<Seat> seats_;
};

}  // namespace megalith
