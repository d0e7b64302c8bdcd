#include "libcore/text/pretokenize/oniguruma_split.h"

#include <memory>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"
#include "libcore/text/patterns/oniguruma.h"
#include "libcore/text/unicode/byte_alphabet.h"

namespace megalith {
namespace {

using TakeMatch = OnigurumaPattern::TakeMatch;

/// Counts the characters before each of several places in ascending order.
class CharacterCount {
 public:
  explicit CharacterCount(std::string_view utf8) : utf8_(utf8) {}
  size_t before(size_t place) {
    for (; at_ < place; ++at_) count_ += continues_character(utf8_[at_]) ? 0 : 1;
    return count_;
  }

 private:
  std::string_view utf8_;
  size_t at_ = 0, count_ = 0;
};

}  // namespace

SplitPattern oniguruma_split_pattern(std::string_view regex) {
  const std::shared_ptr<const OnigurumaPattern> pattern = oniguruma_pattern(regex);
  return {.name = std::string(regex),
          .match = {},
          .find_all = [pattern](std::string_view utf8, const TakeMatch& take) {
            pattern->each_match(utf8, take);
          }};
}

SplitPattern oniguruma_split_pattern_of_bytes(std::string_view regex) {
  const std::shared_ptr<const OnigurumaPattern> pattern = oniguruma_pattern(regex);
  return {.name = concat("bytes ", regex),
          .match = {},
          .of_bytes = true,
          .find_all = [pattern](std::string_view bytes, const TakeMatch& take) {
            const std::string written = to_byte_alphabet(bytes);  // a character for each byte
            CharacterCount count(written);
            pattern->each_match(written, [&](size_t begin, size_t end) {
              const size_t first = count.before(begin);
              take(first, count.before(end));
            });
          }};
}

}  // namespace megalith
