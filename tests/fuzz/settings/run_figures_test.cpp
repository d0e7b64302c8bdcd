#include <string>

#include "libcore/train/log/report.h"
#include "tests/fuzz/fuzz.h"

/// Reads the JSON lines of a run, to append to them and for its report.
MEGALITH_FUZZ_TARGET(run_figures) {
  using namespace megalith;
  const std::string path = fuzz::file_of(bytes, "run_figures.jsonl");
  fuzz::accept({ErrorKind::kData}, [&] { check_figures(path); });
  write_report(path, path + ".html");
}
