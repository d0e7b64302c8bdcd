#include "libcore/launch/rank_hello.h"

#include "tests/fuzz/fuzz.h"

// What a stranger may send to the port on which rank 0 listens, or as rank 0, where a job has no token.
MEGALITH_FUZZ_TARGET(rank_hello) {
  try {
    (void)megalith::option_differences({}, megalith::decode_hello(bytes));
  } catch (const megalith::Error&) {  // no hello; it may be an answer, whose error has the kind that it names
    try {
      megalith::fail_as(bytes, "rank 0");
    } catch (const megalith::Error&) {
    }
  }
}
