#pragma once

#include <string>

#include "libcore/ops/backend/attention_choice.h"
#include "libcore/ops/backend/backend.h"

/// cuDNN's attention in place of ours. The backends are those that make_cuda_backend() made.
namespace megalith {

/// The GPU, and the cuDNN that lies where the plugin's libraries are searched for, which is opened with it.
/// `why_not`, unless null, gets why there is none. Throws kDevice.
AttentionLibrary attention_library(const Backend&, std::string* why_not = nullptr);

/// Computes an attention of this kind and its gradient by our kernels and by cuDNN, on the backend's device.
/// Returns why cuDNN is not to compute it, in words; empty if both agree. Frees what it allocates. Throws
/// kDevice.
std::string trouble_with_cudnn(Backend&, const AttentionKind&);

/// From now on the backend computes attention of this kind by cuDNN. Must be called before the first of them.
/// Returns nothing; or, if cuDNN is missing or refuses, changes nothing and returns why, in words.
std::string use_cudnn(Backend&, const AttentionKind&);

}  // namespace megalith
