#include "libcore/base/process.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

namespace megalith {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

uint64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);  // cannot fail for itself
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

void begin_elsewhere(std::thread& thread, size_t nth) {
  const pthread_t handle = thread.native_handle();
  cpu_set_t all, one;
  if (::pthread_getaffinity_np(handle, sizeof all, &all) != 0) return;  // more CPUs than a set has room for
  int cpu = ::sched_getcpu();
  for (size_t left = nth % static_cast<size_t>(CPU_COUNT(&all)); left > 0;) {
    cpu = (cpu + 1) % CPU_SETSIZE;
    if (CPU_ISSET(cpu, &all)) --left;
  }
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (::pthread_setaffinity_np(handle, sizeof one, &one) == 0)
    ::pthread_setaffinity_np(handle, sizeof all, &all);
}

}  // namespace megalith
