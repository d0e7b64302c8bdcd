#include "libcore/launch/hostfile.h"

#include "tests/fuzz/fuzz.h"

MEGALITH_FUZZ_TARGET(hostfile) {
  using namespace megalith;
  fuzz::accept({ErrorKind::kUsage}, [&] { read_hostfile(fuzz::file_of(bytes, "hosts")); });
}
