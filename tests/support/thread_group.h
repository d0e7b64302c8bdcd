#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "libcore/parallel/communicator.h"

namespace megalith::test {

/// Runs `body` once for each of `size` ranks, each on a thread of its own, with a communicator of fp32
/// tensors in host memory between them (collectives only). An exception of any rank is thrown again here; a
/// rank that throws before a collective call that others wait in would hang, so bodies should not.
void run_ranks(int size, const std::function<void(Communicator&)>& body);

}  // namespace megalith::test
