#include "libcore/launch/rank_hello.h"

#include "tests/fuzz/fuzz.h"

// If a job has no token, a stranger may send anything: to the port on which rank 0 listens, or, posing as
// rank 0, to another rank.
MEGALITH_FUZZ_TARGET(rank_hello) {
  try {
    (void)megalith::option_differences({}, megalith::decode_hello(bytes));
  } catch (const megalith::Error&) {  // not a hello; it may be rank 0's answer, an error of any kind
    try {
      megalith::fail_as(bytes, "rank 0");
    } catch (const megalith::Error&) {
    }
  }
}
