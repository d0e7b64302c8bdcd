#include "libcore/dialects/paddle/npy.h"

#include "tests/fuzz/fuzz.h"

MEGALITH_FUZZ_TARGET(npy) {
  const megalith::NpyArray array = megalith::parse_npy(bytes, "fuzzed.npy");
  int64_t sum = 0;
  for (size_t i = 0; i < array.size(); ++i) sum ^= array.at(i);
  if (sum == 1 && array.size() == 0) megalith::fail(megalith::ErrorKind::kInternal, "the sum of nothing");
}
