#pragma once

#include <string>

#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// What goes to stdout, and whether a plan was found. Without one the command ends with kUsage, and the text
/// or JSON says what lacks.
struct PlanAnswer {
  std::string text;
  bool found = false;
};
/// Searches, simulates or compares, as is asked; writes --html and --trace.
PlanAnswer answer(const PlanRequest&);

}  // namespace megalith
