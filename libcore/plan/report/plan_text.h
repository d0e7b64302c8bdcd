#pragma once

#include <string>

#include "libcore/plan/report/report.h"

namespace megalith {

/// The ranked table, the memory estimate of the best plan's stages, what was rejected by which rule, and how
/// to start it. Byte-identical for equal input.
std::string plan_text(const Report&);

}  // namespace megalith
