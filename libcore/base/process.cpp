#include "libcore/base/process.h"

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

}  // namespace megalith
