#include "libcore/launch/rank_hello.h"
#include "tests/fuzz/fuzz.h"

/// Reads the address of rank 0 from torchrun's store, in which any process of the job may write.
MEGALITH_FUZZ_TARGET(rank_address) {
  (void)megalith::decode_address(bytes, "megalith/0/rank0");
}
