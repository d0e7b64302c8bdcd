#include "libcore/plan/log/run_log.h"

#include <string>

#include "tests/fuzz/fuzz.h"

/// Reads a log of Megatron-LM.
MEGALITH_FUZZ_TARGET(run_log) {
  using namespace megalith;
  fuzz::accept({ErrorKind::kUsage}, [&] { parse_run_log(std::string(bytes), "run.log"); });
}
