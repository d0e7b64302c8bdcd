#include "libcore/plan/log/link_log.h"

#include <string>

#include "tests/fuzz/fuzz.h"

/// Reads the output of nccl-tests.
MEGALITH_FUZZ_TARGET(link_log) {
  using namespace megalith;
  const std::string text(bytes);
  if (is_link_log(text)) parse_link_log(text, "all_reduce.log");
}
