#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <nccl.h>

namespace megalith::emulator {

size_t size_of(ncclDataType_t type);

/// A reduction over ranks: element i of the result is that of element i of each input.
struct RingSum {
  ncclDataType_t type;
  ncclRedOp_t reduce;  // ncclSum or ncclMax
  std::vector<const std::byte*> inputs;
  uint64_t elements;
  int first;  // the rank at which the ring begins
};

/// Reduces as a ring of NCCL may: from rank to rank beginning at `first`, rounded to the type at every rank.
/// A maximum takes the number where one of two elements is NaN. So neither order nor roundings are those of
/// the CPU's communicators.
void reduce_ring(const RingSum&, std::byte* out);

}  // namespace megalith::emulator
