#include "libcore/data/cache/python_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

void append_unicode_escape(std::string& out, uint32_t unit) {
  out += "\\u";
  append_hex(out, unit, 4);
}

/// A code point as Python's json module escapes it.
void append_escaped(std::string& out, uint32_t code_point) {
  switch (code_point) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    default:
      break;
  }
  if (code_point >= ' ' && code_point <= '~') {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x10000) {
    append_unicode_escape(out, code_point);
  } else {
    append_unicode_escape(out, 0xd800 + ((code_point - 0x10000) >> 10));
    append_unicode_escape(out, 0xdc00 + ((code_point - 0x10000) & 0x3ff));
  }
}

void append_string(std::string& out, std::string_view text) {
  constexpr uint32_t kEscapedByte = 0xdc00;  // Python's surrogate for a byte that is not UTF-8
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<uint8_t>(text[at]);
    const size_t bytes = byte < 0x80 ? 1 : utf8_sequence(text.substr(at));
    append_escaped(out, bytes == 0 ? kEscapedByte + byte : code_point_at(text.substr(at)).value);
    at += std::max<size_t>(bytes, 1);
  }
  out += '"';
}

void new_line(std::string& out, int depth) {
  out += '\n';
  out.append(4 * static_cast<size_t>(depth), ' ');
}

/// A list or an object, whose elements `append` adds one by one.
template <class Elements, class Append>
void append_all(std::string& out, const Elements& elements, std::string_view brackets, int depth,
                const Append& append) {
  out += brackets[0];
  bool first = true;
  for (const auto& element : elements) {
    if (!first) out += ',';
    first = false;
    new_line(out, depth + 1);
    append(element);
  }
  if (!first) new_line(out, depth);
  out += brackets[1];
}

}  // namespace

std::string python_repr(double value) {
  std::array<char, 32> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::scientific);
  const std::string_view shortest(digits.data(), static_cast<size_t>(end.ptr - digits.data()));
  const size_t mark = shortest.find('e');
  if (mark == std::string_view::npos)
    fail(ErrorKind::kInternal, "a float in a description is ", value, "; wanted a finite one");
  const int64_t exponent =
      *parse_int(shortest[mark + 1] == '+' ? shortest.substr(mark + 2) : shortest.substr(mark + 1));
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  const auto fixed =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  std::string text(digits.data(), fixed.ptr);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string python_repr(std::string_view text) {
  const bool single = text.find('\'') == std::string_view::npos || text.find('"') != std::string_view::npos;
  const char mark = single ? '\'' : '"';
  std::string out(1, mark);
  for (const char c : text) {
    if (c == mark || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return out + mark;
}

std::string python_repr(std::span<const std::string> texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? ", " : "") + python_repr(text);
  return out + "]";
}

void append_python_json(std::string& out, const Json& value, int depth) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_int()) {
    out += concat(value.as_int());
  } else if (value.is_number()) {
    out += python_repr(value.as_double());
  } else if (value.is_string()) {
    append_string(out, value.as_string());
  } else if (value.is_array()) {
    append_all(out, value.as_array(), "[]", depth,
               [&](const Json& one) { append_python_json(out, one, depth + 1); });
  } else {
    append_all(out, value.as_object(), "{}", depth, [&](const Json::Member& member) {
      append_string(out, member.first);
      out += ": ";
      append_python_json(out, member.second, depth + 1);
    });
  }
}

}  // namespace megalith
