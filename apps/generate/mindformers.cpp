#include "apps/generate/mindformers.h"

#include "libcore/base/text.h"

namespace megalith {

void MindFormersOptions::validate(Problems& problems) const {
  if (run_mode && *run_mode != "predict")
    problems.add("run_mode is ", quote(*run_mode),
                 "; megalith-generate runs predict, megalith-pretrain runs train");
}

void MindFormersOptions::apply(GenerateConfig& config, const Options& options) const {
  if (!do_sample || options.on_command_line("temperature")) return;
  if (!*do_sample)
    config.sampling.temperature = 0;
  else if (!options.given("temperature"))
    config.sampling.temperature = 1;
}

}  // namespace megalith
