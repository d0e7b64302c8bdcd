#pragma once

#include <chrono>
#include <functional>

#include "libcore/parallel/communicator.h"

namespace megalith {

/// Does work that takes a different time on each rank, such as reading data, and returns when all ranks have
/// done their work. Meanwhile another thread tells the other ranks at least every second that this rank is
/// alive, so no rank counts as hung, however long the work takes. `peer_timeout`: how long a rank may be
/// silent. Collective; the communicator must not be used for anything else until it returns.
///
/// Throws what the work throws; the caller must then abort() the ranks. When another rank failed or is lost,
/// throws the communicator's error. Work that may take long calls `check` from time to time, which throws
/// that error at once.
using TogetherWork = std::function<void(const std::function<void()>& check)>;
void do_together(Communicator& ranks, std::chrono::milliseconds peer_timeout, const TogetherWork& work);

/// The interval at which a rank that works alone tells the others that it is alive; they wait at most
/// `peer_timeout` for it.
std::chrono::milliseconds between_signs_of_life(std::chrono::milliseconds peer_timeout);

}  // namespace megalith
