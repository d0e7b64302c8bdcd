#pragma once

#include <algorithm>
#include <cstdint>

namespace megalith {

// Sums in rank order over the devices of a group (--deterministic-collectives). Each rank gets its part of
// the tensors of all ranks and adds these up; after an all-reduce it sends the sum to all. The backend, the
// dry run and the planner read here who sends how much.

/// The elements of a tensor that one rank adds up.
struct OrderedPart {
  int64_t begin, elements;
};
/// Those of place `rank` of `size`, of `all` elements: all parts but the last ones have equally many.
inline OrderedPart ordered_part(int64_t all, int rank, int size) {
  const int64_t each = (all + size - 1) / size, begin = std::min(all, each * rank);
  return {begin, std::min(all, begin + each) - begin};
}

/// Messages of one rank. What has no elements is not sent.
struct OrderedSends {
  int64_t calls = 0, elements = 0;

  OrderedSends operator+(const OrderedSends& other) const {
    return {calls + other.calls, elements + other.elements};
  }
};
/// Those by which place `rank` gives the others their parts of its tensor.
inline OrderedSends ordered_parts_sent(int64_t all, int rank, int size) {
  const int64_t own = ordered_part(all, rank, size).elements, each = (all + size - 1) / size;
  const int64_t parts = each == 0 ? 0 : (all + each - 1) / each;  // that have elements
  return {parts - (own > 0 ? 1 : 0), all - own};
}
/// Those by which it gives its sum to the others.
inline OrderedSends ordered_sum_sent(int64_t all, int rank, int size) {
  const int64_t own = ordered_part(all, rank, size).elements;
  return {own > 0 ? size - 1 : 0, own * (size - 1)};
}

}  // namespace megalith
