#pragma once

#include <string>

#include "libcore/plan/search.h"

namespace megalith {

/// The ranked table (at most `rows` plans), the memory bill of the best plan's stages, what was rejected by
/// which rule, and the options of a pretraining run for it. Byte-identical for equal input.
std::string plan_text(const PlanProblem&, const SearchResult&, int rows);

/// The same as one JSON object.
std::string plan_json(const PlanProblem&, const SearchResult&, int rows);

/// "--tensor-model-parallel-size 8 …" for megalith-pretrain and Megatron alike.
std::string launch_options(const PlanProblem&, const Candidate&);

}  // namespace megalith
