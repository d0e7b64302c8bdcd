#include "libcore/text/unicode/python_text.h"

#include <utf8proc.h>

#include "libcore/base/utf8.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/punkt_chars.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

/// Calls visit(blank, at, bytes) for each character.
template <class Visit>
void each_character(std::string_view text, const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.substr(at));
    visit(is_python_space(c.value), at, c.bytes);
    at += c.bytes;
  }
}

}  // namespace

std::string_view stripped(std::string_view text) {
  size_t begin = text.size();
  each_character(text, [&](bool blank, size_t at, size_t) {
    if (!blank && begin == text.size()) begin = at;
  });
  return right_stripped(text.substr(begin));
}

std::string_view right_stripped(std::string_view text) {
  size_t end = 0;
  each_character(text, [&](bool blank, size_t at, size_t bytes) {
    if (!blank) end = at + bytes;
  });
  return text.substr(0, end);
}

int64_t blank_separated_parts(std::string_view text) {
  int64_t parts = 1;
  bool inside = false;  // whether the last character was a blank
  each_character(text, [&](bool blank, size_t, size_t) {
    if (blank && !inside) ++parts;
    inside = blank;
  });
  return parts;
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return {};
  const CodePoint first = code_point_at(text);
  std::string lower_first, lower, out;
  append_lower(text.substr(0, first.bytes), lower_first);
  append_lower(text, lower);
  append_utf8(out, static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(first.value))));
  return out += lower.substr(lower_first.size());
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at; (at = text.find(from)) != std::string_view::npos; text.remove_prefix(at + from.size())) {
    out += text.substr(0, at);
    out += to;
  }
  return out += text;
}

}  // namespace megalith
