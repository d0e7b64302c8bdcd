#include "libcore/base/process.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

#include <sched.h>
#include <sys/resource.h>

#include "libcore/base/text.h"

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

int visible_gpus() {
  const char* const named = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!named) {
    std::error_code no_driver;
    const std::filesystem::directory_iterator gpus("/proc/driver/nvidia/gpus", no_driver);
    return no_driver ? 0 : static_cast<int>(std::distance(gpus, {}));
  }
  int count = 0;
  for (const std::string& entry : split(named, ',')) {
    const std::string_view id = trim(entry);
    const auto number = parse_int(id);
    if (!(number && *number >= 0) && !id.starts_with("GPU-") && !id.starts_with("MIG-")) break;
    ++count;
  }
  return count;
}

}  // namespace megalith
