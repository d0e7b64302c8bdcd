#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace megalith {

/// A set of code points, as ranges.
class CharRanges {
 public:
  static constexpr uint32_t kLast = 0x10FFFF;
  using Range = std::pair<uint32_t, uint32_t>;  // first and last

  CharRanges() = default;
  /// In any order; they may overlap.
  explicit CharRanges(std::vector<Range> ranges);
  static CharRanges all() { return CharRanges({{0, kLast}}); }
  static CharRanges one(uint32_t code_point) { return CharRanges({{code_point, code_point}}); }

  CharRanges operator|(const CharRanges& other) const;
  CharRanges operator&(const CharRanges& other) const;
  CharRanges operator~() const;
  bool operator==(const CharRanges&) const = default;

  bool empty() const { return ranges_.empty(); }
  bool has(uint32_t code_point) const;
  /// In ascending order, with others between them.
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

}  // namespace megalith
