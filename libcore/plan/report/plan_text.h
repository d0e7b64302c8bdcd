#pragma once

#include <string>

#include "libcore/plan/report/report.h"

namespace megalith {

/// The ranked table of plans, the memory estimate of the best plan's stages, the number of partitions that
/// each rule rejected, and how to start the best plan. Byte-identical for equal input.
std::string plan_text(const Report&);

}  // namespace megalith
