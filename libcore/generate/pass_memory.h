#pragma once

#include <cstddef>
#include <cstdint>

#include "libcore/generate/generate.h"

namespace megalith {

/// The place of this rank among those that share the model's matrices.
TensorSplit split_of(const Generator::Limits&);

/// The scratch bytes that any pass of a generator needs: over up to `prompt` tokens of one prompt, over a new
/// token of each sequence, and over prompts that share a pass.
size_t scratch_bytes(const Stage&, const Generator::Limits&, int64_t prompt);

}  // namespace megalith
