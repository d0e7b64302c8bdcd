#include "libcore/launch/rank_channel.h"

#include <string>

#include "tests/fuzz/fuzz.h"

// The frames of the rendezvous, before and behind the greeting.
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
