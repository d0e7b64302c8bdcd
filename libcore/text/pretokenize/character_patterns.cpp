#include "libcore/text/pretokenize/character_patterns.h"

#include <array>
#include <string>
#include <utility>

#include "libcore/text/unicode/byte_alphabet.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/reference_chars.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

/// The characters of a kind.
template <class Has>
class Kind {
 public:
  explicit Kind(Has holds) : has_(std::move(holds)) {
    for (uint32_t c = 0; c < ascii_.size(); ++c) ascii_[c] = has_(c);
  }
  bool has(uint32_t code_point) const { return has_(code_point); }
  /// The bytes of the character at `at` if it is of this kind, else 0.
  size_t bytes_at(const char* at, const char* end) const {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte < ascii_.size()) return ascii_[byte] ? 1 : 0;
    const CodePoint c = code_point_at({at, end});
    return has_(c.value) ? c.bytes : 0;
  }

 private:
  Has has_;
  std::array<bool, 128> ascii_{};
};

template <class Has>
SplitPattern pattern_of(const std::string& name, bool each, Has has) {
  const Kind<Has> kind(std::move(has));
  const auto match = [kind, each](const char* at, const Window& text) {
    while (text.has(at)) {
      const size_t bytes = kind.bytes_at(at, text.end());
      at += bytes;
      if (bytes == 0 || each) break;
    }
    return at;
  };
  return {.name = name, .match = match, .begins = [kind](uint32_t c) { return kind.has(c); }};
}

bool is_digit(uint32_t code_point) {
  return char_traits(code_point).is_digit();
}

}  // namespace

SplitPattern digits_pattern(bool each) {
  return pattern_of(each ? kDigitsName : "numbers", each, [](uint32_t c) { return is_digit(c); });
}

SplitPattern digits_pattern_of_bytes(bool each) {
  const auto match = [each](const char* at, const Window& text) {
    while (text.has(at) && is_digit(byte_to_code_point(static_cast<uint8_t>(*at)))) {
      ++at;
      if (each) break;
    }
    return at;
  };
  return {.name = each ? "bytes digits" : "bytes numbers", .match = match, .of_bytes = true};
}

SplitPattern punctuation_pattern(bool each) {
  return pattern_of(each ? "punctuation" : "runs of punctuation", each,
                    [](uint32_t c) { return reference_char(c).is_punctuation(); });
}

SplitPattern spaces_pattern() {
  return pattern_of("white space", false, [](uint32_t c) { return is_space(c); });
}

SplitPattern words_pattern() {
  // Whitespace has the same \w as "single_word" (tools/make_unicode_tables checks it).
  return pattern_of("words", false, [](uint32_t c) { return char_traits(c).is_word(); });
}

}  // namespace megalith
