#pragma once

#include "libcore/json/json.h"
#include "libcore/train/products/product_choices.h"

namespace megalith {

/// The member of the choice of products that holds the choice of attention.
inline constexpr const char* kAttentionChoice = "attention";

/// Lets the backends of all ranks with the same kind of GPU and the same cuDNN as rank 0 compute the same
/// kinds of attention by cuDNN: those of the checkpoint, if it was saved on the same kind of GPU with the
/// same cuDNN; otherwise all that agree with our kernels on rank 0's device. Says in one line which, and why
/// not the others. Warns in one line if the checkpoint's choice is not used: bits may then differ; and in one
/// for each rank whose kernels compute what rank 0's cuDNN computes, with the reason. Returns what a
/// checkpoint is to hold; null on the CPU. Collective. Throws kDevice.
Json choose_attention(const ProductRun&, Backend&);

}  // namespace megalith
