#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "libcore/text/patterns/pattern_parser.h"

namespace megalith {

/// A regular expression as a table: for each state and class of characters the next state. Finds what a
/// backtracking engine finds, which is the first alternative that matches and not the longest, in one pass
/// over the text: a state is the list of the places in the expression where such an engine may be, in the
/// order in which it would try them.
class CompiledPattern {
 public:
  /// Throws UnsupportedPattern.
  explicit CompiledPattern(std::string_view regex);

  using Class = uint8_t;
  Class class_of_ascii(uint8_t c) const { return ascii_[c]; }
  Class class_of(uint32_t code_point) const {
    return classes_[size_t{blocks_[code_point >> 6]} << 6 | (code_point & 63)];
  }

  /// Reads a text character by character from where a match may begin.
  class Run {
   public:
    explicit Run(const CompiledPattern& pattern) : pattern_(pattern), row_(pattern.stride_) {}
    /// What the next character says.
    struct Step {
      bool matched;  // a match ends before the character, better than those found before
      bool goes_on;  // a better match may end after it
    };
    Step step(Class next) {
      const uint32_t entry = pattern_.next_[row_ + next];
      row_ = entry & kRow;
      return {(entry & kMatched) != 0, row_ != kDead};
    }
    /// Whether a match ends at the end of the text.
    bool matched_at_end() { return step(pattern_.end_class()).matched; }

   private:
    const CompiledPattern& pattern_;
    uint32_t row_;  // of the state
  };

  /// Whether a match may begin with a character of this class.
  bool may_begin(Class first) const { return (next_[stride_ + first] & kRow) != kDead; }
  /// Whether a match begins at every place of every text.
  bool covers_texts() const;

  size_t states() const { return next_.size() / stride_; }

 private:
  class Builder;
  // The row of the state in which nothing matches any more is the first, that of the start the second.
  static constexpr uint32_t kDead = 0;
  static constexpr uint32_t kMatched = uint32_t{1} << 31, kRow = ~kMatched;
  Class end_class() const { return static_cast<Class>(stride_ - 1); }
  void set_classes(const std::vector<Class>& of_ranges, const std::vector<uint32_t>& begins);

  std::vector<uint16_t> blocks_;  // of each 64 code points, the block in classes_
  std::vector<Class> classes_;
  std::array<Class, 128> ascii_{};  // of ASCII, by one look-up in place of two
  uint32_t stride_ = 0;             // the number of classes, and one for the end
  std::vector<uint32_t> next_;  // of each state a row, with the next state's row for each class, and kMatched
};

}  // namespace megalith
