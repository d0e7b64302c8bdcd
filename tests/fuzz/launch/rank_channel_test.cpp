#include "libcore/launch/rank_channel.h"

#include <string>

#include "tests/fuzz/fuzz.h"

// Reads frames of the rendezvous, first as a greeting, then as messages after one.
MEGALITH_FUZZ_TARGET(rank_channel) {
  (void)megalith::may_be_greeting(bytes);
  std::string received(bytes);
  megalith::ProvenMessages messages("t", {.first = "a", .other = "b"}, megalith::RankSide::kFirst);
  try {
    while (messages.take(received, 1000)) {
    }
  } catch (const megalith::Unproven&) {
  }
}
