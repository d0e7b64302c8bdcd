#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "libcore/launch/rank_channel.h"
#include "libcore/launch/rank_hello.h"
#include "libcore/launch/socket.h"

namespace megalith {

struct AdmissionOptions {
  RankHello mine;
  std::string token;                  // of the job; may be empty
  std::chrono::milliseconds timeout;  // for messages
  Deadline deadline;
};

/// Rank 0's side of the rendezvous: waits at `listener` until all ranks have joined. Returns the connections
/// in rank order; the first place is empty.
///
/// A connection has two seconds to prove that it is a rank of this job; any other is refused, and each rank
/// is admitted once. Strangers never keep a rank out: when there is no room for more of them, the oldest
/// goes, and those that have not said the greeting never displace those that have. A rank that went tries
/// again.
///
/// When the options of a rank differ, every rank is told so, also those that join later; kUsage. kComm at the
/// deadline, with the ranks that did not join; kIo if this process may open too few files.
std::vector<RankChannel> admit_ranks(Socket listener, const AdmissionOptions&);

}  // namespace megalith
