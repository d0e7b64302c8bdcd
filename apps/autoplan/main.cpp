#include <iostream>

#include "apps/app.h"
#include "libcore/plan/plan_options.h"

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("autoplan", [&] {
    PlanCommand command;
    Options options("autoplan", "Rank the ways to cut a model over devices, before paying for them.");
    command.add_to(options);
    if (!read_options(options, argc, argv)) return 0;
    command.check(options);
    const PlanAnswer plans = answer(command, plan_request(command, options));
    std::cout << plans.text;
    return plans.found ? 0 : exit_code(ErrorKind::kUsage);
  });
}
