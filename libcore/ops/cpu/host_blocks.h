#pragma once

#include <cstddef>

#include "libcore/tensor/device.h"

namespace megalith::cpu {

/// Allocates host memory for tensors: zero, aligned to 256 bytes, freed with the last copy of the result.
/// From two huge pages on it has such pages, since attention reads rows that are several small pages apart.
/// Throws NoMemory (kSystem).
Memory allocate_block(size_t bytes);

}  // namespace megalith::cpu
