#include "libcore/base/terminal.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
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

/// The code point of one UTF-8 character, which must be valid.
uint32_t code_point_of(std::string_view character) {
  constexpr uint32_t kFirstBits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};  // of the first byte, by the length
  uint32_t code = static_cast<unsigned char>(character[0]) & kFirstBits[character.size()];
  for (const char byte : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(byte) & 0x3f);
  return code;
}

/// Whether a UTF-8 character is one that a terminal may obey, or that hides or reorders others: the controls
/// of ASCII and U+0080 to U+009F, ends of lines, marks of direction, tags and invisible characters. Joiners
/// (U+200C, U+200D) are part of words and emoji.
bool is_control(std::string_view character) {
  constexpr struct {
    uint32_t first, last;
  } kRanges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
                 {0x180e, 0x180e}, {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},
                 {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
  const uint32_t code = code_point_of(character);
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [code](const auto& range) { return range.first <= code && code <= range.last; });
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

std::string printable_lines(std::string_view text) {
  std::string out;
  for (size_t end = 0;; text.remove_prefix(end + 1)) {
    end = std::min(text.find_first_of("\n\t"), text.size());
    out += printable(text.substr(0, end));
    if (end == text.size()) return out;
    out += text[end];
  }
}

std::string printable_message(std::string_view text, size_t max) {
  constexpr std::string_view kFurtherLine = "\n  ";
  std::string out;
  while (true) {
    const size_t end = std::min(text.find(kFurtherLine), text.size());
    out += printable(text.substr(0, end), max);
    if (end == text.size()) return out;
    out += kFurtherLine;
    text.remove_prefix(end + kFurtherLine.size());
  }
}

std::string quote_name(std::string_view name) {
  constexpr size_t kMost = 200;
  return printable(quote(shortened(name, kMost)), 5 * kMost);  // quote() turns one byte into at most four
}

}  // namespace megalith
