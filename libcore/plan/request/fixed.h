#pragma once

#include "libcore/plan/request/plan_options.h"

namespace megalith {

/// Sizes, recomputation, sharding and the pipeline's cut as far as the command line gives them. kUsage when
/// they contradict each other or the model, or are not priced.
void fix_sizes(const PlanCommand&, const Options& given, PlanRequest&);

/// --attention-kernel, or what Megatron's --attention-backend says; of this machine's processor the first.
/// kUsage when they contradict each other.
AttentionKernel attention_of(const PlanCommand&, const Options& given);

}  // namespace megalith
