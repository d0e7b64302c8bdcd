#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace megalith {

/// The parts of a dataset, in Megatron's order.
constexpr std::array<const char*, 3> kSplitNames = {"train", "valid", "test"};

/// Sequences [begin, end) of a dataset.
struct SequenceRange {
  int64_t begin = 0, end = 0;
  bool operator==(const SequenceRange&) const = default;
};

/// The shares of train, valid and test of a dataset of `sequences`, from Megatron's --split ("969, 30, 1"):
/// its numbers are weights, missing ones are 0; a part of weight 0 is absent. A part may be empty if there
/// are few sequences. Same doubles as parse_and_normalize_split and convert_split_vector_to_split_matrix,
/// rounded half to even. kUsage.
std::array<std::optional<SequenceRange>, 3> split_sequences(std::string_view split, int64_t sequences);

}  // namespace megalith
