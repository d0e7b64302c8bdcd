#pragma once

#include <chrono>
#include <functional>

#include "libcore/parallel/communicator.h"

namespace megalith {

/// Does work that takes each rank its own time, such as reading data, and returns when all ranks have done
/// theirs: meanwhile another thread tells the others every second that this one lives, so that however long
/// the work takes, nobody counts as hung. `peer_timeout`: after which a silent rank does. Collective; the
/// communicator is not used for anything else until it returns.
///
/// Throws what the work throws, whereupon the caller must abort() the ranks, and when another rank failed or
/// is gone what the communicator says of it. Work that may take long calls `check` now and then, which throws
/// the latter at once.
using TogetherWork = std::function<void(const std::function<void()>& check)>;
void do_together(Communicator& ranks, std::chrono::milliseconds peer_timeout, const TogetherWork& work);

/// How often a rank that works alone tells the others so, because they wait at most `peer_timeout` for it.
std::chrono::milliseconds between_signs_of_life(std::chrono::milliseconds peer_timeout);

}  // namespace megalith
