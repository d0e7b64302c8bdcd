#pragma once

#include <optional>
#include <string>

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// Why a candidate is not legal: the rule's id as in docs/planner.md, what is wrong with which numbers, and
/// the smallest change that makes it legal.
struct Rejection {
  const char* rule;
  std::string reason;
};

/// Fills data, microbatches and global_batch and checks every rule. Nothing when the candidate is legal.
std::optional<Rejection> complete(const PlanProblem&, Candidate&);
/// The same without words: the rule's id, or nullptr when the candidate is legal.
const char* broken_rule(const PlanProblem&, Candidate&);

/// "products in 4 bits" where the device has none of the precision; nullptr: it has them.
const char* missing_products(const Accelerator&, Precision);

}  // namespace megalith
