#include "libcore/base/process.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

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

int usable_cpus() {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));  // more CPUs than a mask has
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace megalith
