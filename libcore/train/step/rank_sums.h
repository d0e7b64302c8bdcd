#pragma once

#include <cstddef>

#include "libcore/model/param_store.h"
#include "libcore/parallel/topology.h"
#include "libcore/train/step/layout.h"

namespace megalith {

/// Bytes of a device that sums in rank order over NCCL need (--deterministic-collectives), beside the scratch
/// memory `workspace` of the compute stream: a stream gathers what all ranks have of its part of a sum, which
/// together is as much as the sum itself. The compute stream sums hidden states and their gradients, keys and
/// values, and a tied table; that of the buckets the largest of these; that of exchanges in pieces a piece,
/// or with sequence parallelism the parts of one rank. 0 if NCCL is not used, or adds in its own order.
size_t rank_sum_bytes(const RunShape&, const Coord& at, const ParamStore&, size_t workspace);

}  // namespace megalith
