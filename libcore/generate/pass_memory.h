#pragma once

#include <cstddef>
#include <cstdint>

#include "libcore/generate/generate.h"

namespace megalith {

/// The place of this rank among those that share the model's matrices.
TensorSplit split_of(const Generator::Limits&);

/// The most tokens of prompts that share a pass: as many as each prompt may have and still get what it gets
/// alone. With matrices of bf16 or 8 bits, whose products of many rows are the fastest and round anyway, as
/// many as a pass over one prompt.
int64_t most_shared_tokens(const Stage&);

/// The scratch bytes that any pass of a generator needs: over up to `prompt` tokens of one prompt, over a new
/// token of each sequence, and over prompts that share a pass.
size_t scratch_bytes(const Stage&, const Generator::Limits&, int64_t prompt);

}  // namespace megalith
