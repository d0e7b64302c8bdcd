#include "libcore/launch/rank_hello.h"

#include "tests/fuzz/fuzz.h"

// What a stranger may send to the port on which rank 0 listens.
MEGALITH_FUZZ_TARGET(rank_hello) {
  const auto hello = megalith::decode_hello(bytes);
  if (hello) (void)megalith::option_differences({}, *hello);
}
