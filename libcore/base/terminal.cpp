#include "libcore/base/terminal.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <sys/ioctl.h>
#include <unistd.h>

#include "libcore/base/text.h"
#include "libcore/base/utf8.h"

namespace megalith {
namespace {

constexpr size_t kUsual = 80, kMin = 20;

size_t characters(std::string_view text) {
  return static_cast<size_t>(count_code_points(text));
}

/// Whether a UTF-8 character is a control character: an ASCII one, or one of U+0080 to U+009F, which some
/// terminals obey, too.
bool is_control(std::string_view character) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(character[at]); };
  return byte(0) < 0x20 || byte(0) == 0x7f || (byte(0) == 0xc2 && byte(1) < 0xa0);
}

}  // namespace

size_t columns_of(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* told = std::getenv("COLUMNS");
  const auto columns = told ? parse_int(told) : std::nullopt;
  return columns && *columns >= static_cast<int64_t>(kMin) ? static_cast<size_t>(*columns) : kUsual;
}

std::string_view fitting(std::string_view text, size_t columns) {
  size_t end = 0;
  for (size_t seen = 0; end < text.size(); ++end)
    if (!continues_character(text[end]) && seen++ == columns) break;
  return text.substr(0, end);
}

std::string wrapped(std::string_view text, size_t columns, std::string_view indent, std::string_view joint) {
  std::string out;
  size_t used = 0, begin = 0;
  bool line_has_word = false;
  while (begin < text.size()) {
    size_t end = begin;
    while (end < text.size() && text[end] == ' ') ++end;  // a word includes the blanks before it
    while (end < text.size() && text[end] != ' ' && text[end] != '\n') ++end;
    std::string_view word = text.substr(begin, end - begin);
    const bool last_of_line = end == text.size() || text[end] == '\n';
    const size_t room = columns - (last_of_line ? 0 : characters(joint));
    if (line_has_word && used + characters(word) > room) {
      out += joint;
      out += '\n';
      out += indent;
      used = characters(indent);
      word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    }
    out += word;
    used += characters(word);
    line_has_word = true;
    begin = end;
    if (begin < text.size() && text[begin] == '\n') {
      out += '\n';
      used = 0;
      line_has_word = false;
      ++begin;
    }
  }
  return out;
}

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

std::string printable_lines(std::string_view text, size_t max) {
  std::string out;
  for (size_t end = 0;; text.remove_prefix(end + 1)) {
    end = std::min(text.find_first_of("\n\t"), text.size());
    out += printable(text.substr(0, end), max);
    if (end == text.size()) return out;
    out += text[end];
  }
}

std::string quote_name(std::string_view name) {
  constexpr size_t kMost = 200;
  return printable(quote(shortened(name, kMost)), 5 * kMost);  // quote() turns one byte into at most four
}

}  // namespace megalith
