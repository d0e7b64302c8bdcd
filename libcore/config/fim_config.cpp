#include "libcore/config/fim_config.h"

namespace megalith {

void FimConfig::validate(Problems& problems) const {
  if (!on) {
    for (const Difference& given : differences(FimConfig{}, *this))
      problems.add(Opt{given.name}, " needs ", Opt{"fim-data"});
    return;
  }
  if (split_sample && !fragment_rate)
    problems.add(Opt{"fim-split-sample"}, ' ', *split_sample, " needs ", Opt{"fim-fragment-rate"});
  if (fragment_rate && !split_sample)
    problems.add(Opt{"fim-fragment-rate"}, ' ', *fragment_rate, " needs ", Opt{"fim-split-sample"});
}

template std::vector<Field> fields_of<FimConfig>(FimConfig&);

}  // namespace megalith
