#include "libcore/options/config_file.h"

#include "tests/fuzz/fuzz.h"

/// Reads a file of settings, YAML or JSON, and looks at all of its keys.
MEGALITH_FUZZ_TARGET(config_file) {
  using namespace megalith;
  for (const FileOption& option : read_config_file(fuzz::file_of(bytes, "run.yaml")))
    if (!option.path().ends_with(option.key)) fail(ErrorKind::kInternal, "a path without its key");
}
