#pragma once

#include <string>

#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// What is written to stdout, and whether a plan was found. If none was found, the command ends with kUsage,
/// and the text or JSON says what is missing.
struct PlanAnswer {
  std::string text;
  bool found = false;
};
/// Searches, simulates or compares, as requested; writes --html and --trace.
PlanAnswer answer(const PlanRequest&);

}  // namespace megalith
