#pragma once

#include <string>

#include "libcore/doctor/finding.h"

namespace megalith {

/// The smallest training run on the CPU, by the program `pretrain`: one finding. Waits until it ends.
Findings check_smallest_run(const std::string& pretrain);

}  // namespace megalith
