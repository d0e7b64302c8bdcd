#pragma once

#include <cstdint>

namespace megalith {

/// The number of ids rounded up to a multiple of `multiple` (--make-vocab-size-divisible-by times the
/// tensor-parallel size).
int64_t padded_vocab_size(int64_t size, int64_t multiple);

/// Logs Megatron's line about the padding.
void log_padded_vocab(int64_t size, int64_t padded);

}  // namespace megalith
