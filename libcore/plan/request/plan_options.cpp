#include "libcore/plan/request/plan_options.h"

#include "libcore/base/text.h"

namespace megalith {

void PlanOptions::validate(Problems& problems) const {
  if (optimizer_instances > 1)
    problems.add(Opt{"num-distributed-optimizer-instances"}, ' ', optimizer_instances,
                 " is not planned; leave it out, or give ", Opt{"sharding"});
  if (overlap_parameters.value_or(false) && !overlap_gradients)
    problems.add("O1: ", Opt{"overlap-param-gather"}, " needs ", Opt{"overlap-grad-reduce"});
  if (budget && gpu_hour <= 0)
    problems.add(Opt{"budget"}, ' ', format_double(*budget), " needs ", Opt{"gpu-hour-price"});
  if (local() && !software.empty() && software != kMegalithSoftware)
    problems.add(Opt{"software"}, ' ', software, ": only ", kMegalithSoftware,
                 " is planned for this machine's processor; leave it out, or give another ", Opt{"gpu"});
  if (local() && !features.empty())
    problems.add(Opt{"software-features"},
                 " is not planned for this machine's processor; leave it out, or give another ", Opt{"gpu"});
  if (!fp8_recipe.empty() && fp8_format.empty())
    problems.add(Opt{"fp8-recipe"}, ' ', fp8_recipe, " needs ", Opt{"fp8-format"});
}

template std::vector<Field> fields_of<PlanOptions>(PlanOptions&);

}  // namespace megalith
