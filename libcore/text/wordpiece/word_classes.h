#pragma once

#include <array>
#include <cstdint>

namespace megalith {

/// Where texts are cut into words, by the two characters at each place: what pre-tokenizers of Hugging Face
/// do that look at single characters. The cuts of several in turn are those of all.
struct WordCuts {
  enum class Apart : uint8_t {
    kNo,
    kRuns,  // runs of such characters are words
    kEach,  // each such character is a word
  };
  bool at_spaces = false;   // white space separates words, and is in none
  bool by_letters = false;  // all characters of a word are \w, or none is
  Apart punctuation = Apart::kNo;
  Apart digits = Apart::kNo;

  void add(const WordCuts& other);
};

/// The classes of characters by which WordCuts tell words apart.
class WordClasses {
 public:
  using Class = uint8_t;
  explicit WordClasses(const WordCuts& cuts);

  Class of(uint32_t code_point) const {
    return code_point < ascii_.size() ? ascii_[code_point] : find(code_point);
  }
  /// Whether a character of this class is in no word.
  static bool is_space(Class c) { return (c & kSpace) != 0; }
  /// Whether two neighbouring characters of these classes are in one word.
  static bool joined(Class a, Class b) { return a == b && (a & (kSpace | kAlone)) == 0; }

 private:
  static constexpr Class kSpace = 1, kAlone = 2, kLetter = 4, kPunctuation = 8, kDigit = 16;
  Class find(uint32_t code_point) const;

  WordCuts cuts_;
  std::array<Class, 128> ascii_{};
};

}  // namespace megalith
