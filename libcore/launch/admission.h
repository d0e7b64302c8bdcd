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
  std::chrono::milliseconds timeout;  // named in messages
  Deadline deadline;
};

/// Rank 0's side of the rendezvous: waits at `listener` until all ranks have joined. Returns the connections
/// in rank order; the first place is empty.
///
/// A connection has two seconds to prove that it is a rank of this job; any other is refused, and each rank
/// is admitted once. Strangers never keep a rank out: when there is no room for another connection, the
/// oldest unproven one is closed, and connections that have not sent the greeting never displace those that
/// have. A rank whose connection was closed tries again.
///
/// When a rank's options differ, every rank is told so, including those that join later, and this throws
/// kUsage. At the deadline it throws kComm, with the ranks that did not join. It throws kIo if this process
/// may open too few files.
std::vector<RankChannel> admit_ranks(Socket listener, const AdmissionOptions&);

}  // namespace megalith
