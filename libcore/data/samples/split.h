#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace megalith {

/// The parts of a dataset, in Megatron's order.
constexpr std::array<const char*, 3> kSplitNames = {"train", "valid", "test"};

/// Sequences [begin, end) of a dataset.
struct SequenceRange {
  int64_t begin = 0, end = 0;
  bool operator==(const SequenceRange&) const = default;
};

/// Splits a dataset of `sequences` sequences into train, valid and test by Megatron's --split ("969, 30, 1").
/// The numbers in `split` are weights; missing numbers are 0. A part of weight 0 is absent; a part may be
/// empty if there are few sequences. The bounds are computed in double and rounded half to even, as in
/// Megatron's parse_and_normalize_split and convert_split_vector_to_split_matrix. kUsage.
std::array<std::optional<SequenceRange>, 3> split_sequences(std::string_view split, int64_t sequences);

/// The bounds of the parts as shares of a dataset, before they are rounded to sequences. kUsage.
struct SplitBounds {
  double begin = 0, end = 0;
};
std::array<std::optional<SplitBounds>, 3> split_bounds(std::string_view split);
/// The same bounds in a dataset of `sequences` sequences.
SequenceRange sequences_between(const SplitBounds& bounds, int64_t sequences);

/// A split in which each part that has a weight in `split` gets at least one of the sequences: "3,1,1" for
/// five. Empty if there are too few.
std::string split_with_all_parts(std::string_view split, int64_t sequences);

}  // namespace megalith
