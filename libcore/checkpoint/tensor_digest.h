#pragma once

#include <cstdint>
#include <string>

#include "libcore/checkpoint/tensor_file.h"

namespace megalith {

/// The most values of a tensor that a digest covers.
inline constexpr int64_t kDigestValues = 4096;

/// A hash of what a container holds, in 16 hexadecimal digits: names, types and shapes of all tensors, and
/// the values of those whose type we can read. If a tensor has more than kDigestValues values, the hash
/// covers one block of about that many, at a place that `seed` determines. Containers that hold checksums of
/// all their bytes (TensorFile::checksums()) are not read: their checksums are hashed. Throws what
/// TensorFile::read() throws.
std::string tensor_digest(const TensorFile&, uint64_t seed = 0);

}  // namespace megalith
