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
/// As complete(), but returns only the id of the broken rule; nullptr when the candidate is legal.
const char* broken_rule(const PlanProblem&, Candidate&);

/// G1: whether nothing may be recomputed, since Megatron's layers are replayed as CUDA graphs.
bool graphs_exclude_recomputation(const PlanProblem&);

/// What the device does not have for the precision, such as "products in 4 bits"; nullptr: nothing.
const char* missing_products(const Accelerator&, Precision);

}  // namespace megalith
