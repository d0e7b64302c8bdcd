#pragma once

#include <optional>
#include <string>

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// Why a candidate is not legal: the rule's id as in docs/planner.md, the problem with its numbers, and the
/// smallest change that makes the candidate legal.
struct Rejection {
  const char* rule;
  std::string reason;
};

/// Sets data, microbatches and global_batch and checks every rule. Nothing when the candidate is legal.
std::optional<Rejection> complete(const PlanProblem&, Candidate&);
/// The same without a text: the rule's id, or nullptr when the candidate is legal.
const char* broken_rule(const PlanProblem&, Candidate&);

/// "products in 4 bits" if the device does not support the precision; nullptr: it does.
const char* missing_products(const Accelerator&, Precision);

}  // namespace megalith
