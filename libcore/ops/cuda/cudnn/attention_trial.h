#pragma once

#include <string>

#include "libcore/ops/backend/attention_choice.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/ops/cuda/backend/attention_ops.h"

namespace megalith::cuda {

/// Computes an attention and its gradient by our kernels and by `other`, and compares them row by row
/// (rows_are_close()). Both round products of scores, and results, to 8 bits (bf16), by at most 1/256 each; a
/// row of a gradient has three such roundings on either side, in all 6/256 where none of them cancel. The
/// gradient of a query that sees one key is 0. Returns what differs; empty if nothing does. Frees what it
/// allocates. Throws kDevice.
std::string difference_of(Backend&, OtherAttention& other, const AttentionKind&);

}  // namespace megalith::cuda
