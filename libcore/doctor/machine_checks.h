#pragma once

#include <string>

#include "libcore/doctor/finding.h"

namespace megalith {

/// The processor and the kernels for it; memory, of the machine and of the limits that hold for this process.
Findings check_processor();
Findings check_memory();
/// The limits of this process that runs reach: open files, processes, stacks.
Findings check_limits();
/// The folder of files that later runs use again (io/cache/build_cache.h).
Findings check_cache();
/// POSIX shared memory, which no run needs.
Findings check_shared_memory(const std::string& folder = "/dev/shm");

}  // namespace megalith
