#include "libcore/threads/thread_spread.h"

#include <pthread.h>
#include <sched.h>

namespace megalith {
namespace {

/// `all`: where the thread may be then.
bool move(pthread_t thread, int cpu, const cpu_set_t& all) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (::pthread_setaffinity_np(thread, sizeof one, &one) != 0) return false;
  ::pthread_setaffinity_np(thread, sizeof all, &all);
  return true;
}

}  // namespace

void begin_elsewhere(std::thread& thread, size_t nth) {
  const pthread_t handle = thread.native_handle();
  cpu_set_t all;
  if (::pthread_getaffinity_np(handle, sizeof all, &all) != 0) return;  // more CPUs than a set has room for
  int cpu = ::sched_getcpu();
  for (size_t left = nth % static_cast<size_t>(CPU_COUNT(&all)); left > 0;) {
    cpu = (cpu + 1) % CPU_SETSIZE;
    if (CPU_ISSET(cpu, &all)) --left;
  }
  move(handle, cpu, all);
}

bool ThreadSpread::begin_work(size_t number) {
  Seat& seat = seats_[number];
  const int here = ::sched_getcpu();
  seat.cpu.store(here, std::memory_order_relaxed);
  if (!is_taken(here, number)) return false;
  const auto now = std::chrono::steady_clock::now();
  cpu_set_t all;
  if (now - seat.left < kRest || ::sched_getaffinity(0, sizeof all, &all) != 0) return false;
  seat.left = now;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all) || is_taken(cpu, seats_.size())) continue;
    seat.cpu.store(cpu, std::memory_order_relaxed);
    return move(::pthread_self(), cpu, all);
  }
  return false;
}

bool ThreadSpread::is_taken(int cpu, size_t by_other_than) const {
  for (size_t i = 0; i < seats_.size(); ++i)
    if (i != by_other_than && seats_[i].cpu.load(std::memory_order_relaxed) == cpu) return true;
  return false;
}

}  // namespace megalith
