#include "libcore/base/printable.h"

#include <algorithm>

#include "libcore/base/text.h"
#include "libcore/base/utf8.h"

namespace megalith {
namespace {

/// Whether a character of UTF-8 is a control: one of ASCII, or from U+0080 to U+009F, which some terminals
/// obey too.
bool is_control(std::string_view character) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(character[at]); };
  return byte(0) < 0x20 || byte(0) == 0x7f || (byte(0) == 0xc2 && byte(1) < 0xa0);
}

}  // namespace

std::string printable(std::string_view text, size_t max) {
  const std::string cut = shortened(text, max);
  std::string out;
  size_t n = 0;
  for (std::string_view left = cut; !left.empty(); left.remove_prefix(n)) {
    const size_t character = utf8_sequence(left);
    n = std::max<size_t>(character, 1);
    if (character != 0 && !is_control(left.substr(0, n))) {
      out += left.substr(0, n);
      continue;
    }
    for (const char byte : left.substr(0, n)) {
      out += "\\x";
      append_hex(out, static_cast<unsigned char>(byte), 2);
    }
  }
  return out;
}

std::string quote_name(std::string_view name) {
  constexpr size_t kMost = 200;
  return printable(quote(shortened(name, kMost)), 5 * kMost);  // quote() makes four bytes of one, at most
}

}  // namespace megalith
