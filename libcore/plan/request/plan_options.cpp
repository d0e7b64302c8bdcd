#include "libcore/plan/request/plan_options.h"

namespace megalith {

void PlanOptions::validate(Problems& problems) const {
  if (optimizer_instances > 1)
    problems.add("--num-distributed-optimizer-instances ", optimizer_instances,
                 " is not planned; leave it out, or give --sharding");
  if (budget && gpu_hour <= 0) problems.add("--budget ", *budget, " needs --gpu-hour-price");
  if (!fp8_recipe.empty() && fp8_format.empty())
    problems.add("--fp8-recipe ", fp8_recipe, " needs --fp8-format");
}

}  // namespace megalith
