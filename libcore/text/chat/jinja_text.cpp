#include "libcore/text/chat/jinja_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/punkt_chars.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith::jinja {
namespace {

void append_unit(std::string& out, uint32_t unit) {
  out += "\\u";
  append_hex(out, unit, 4);
}

std::string ascii_quoted(std::string_view text) {
  const std::string quoted = json_quote(text);
  std::string out;
  for (std::string_view rest = quoted; !rest.empty();) {
    const auto [code, bytes] = code_point_at(rest);
    if (code < 0x7F) {
      out += static_cast<char>(code);
    } else if (code < 0x10000) {
      append_unit(out, code);
    } else {
      append_unit(out, 0xD7C0 + (code >> 10));
      append_unit(out, 0xDC00 + (code & 0x3FF));
    }
    rest.remove_prefix(bytes);
  }
  return out;
}

struct Dumper {
  const JsonStyle& style;
  std::string out = {};

  void line(int64_t depth) {
    if (!style.indent) return;
    out += '\n';
    out.append(static_cast<size_t>(std::max<int64_t>(*style.indent, 0) * depth), ' ');
  }
  std::string quoted(const std::string& text) const {
    return style.ensure_ascii ? ascii_quoted(text) : json_quote(text);
  }
  template <class Members, class Put>
  void members(std::string_view brackets, const Members& all, int64_t depth, const Put& put) {
    out += brackets[0];
    for (size_t i = 0; i < all.size(); ++i) {
      if (out.size() > kMaxText) break;
      if (i > 0) out += style.item_separator;
      line(depth + 1);
      put(all[i]);
    }
    if (!all.empty() && out.size() <= kMaxText) line(depth);
    out += brackets[1];
  }
  void object(const Json::Object& members_of, int64_t depth) {
    std::vector<const Json::Member*> order;
    for (const Json::Member& member : members_of) order.push_back(&member);
    if (style.sort_keys)
      std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    members("{}", order, depth, [&](const Json::Member* member) {
      out += quoted(member->first) + style.key_separator;
      value(member->second, depth + 1);
    });
  }
  void value(const Json& json, int64_t depth) {
    if (json.is_array())
      members("[]", json.as_array(), depth, [&](const Json& entry) { value(entry, depth + 1); });
    else if (json.is_object())
      object(json.as_object(), depth);
    else if (json.is_string())
      out += quoted(json.as_string());
    else if (json.is_number() && !json.is_int())
      out += number(json.as_double());
    else
      out += json.dump();
  }
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return python_float(value);
  }
};

bool begins_blank(std::string_view text) {
  return is_python_space(code_point_at(text).value);
}

std::string_view first_character(std::string_view text) {
  return text.substr(0, code_point_at(text).bytes);
}
std::string_view last_character(std::string_view text) {
  return text.substr(character_begin(text, text.size() - 1));
}
/// Bytes before the first blank.
size_t word_size(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && !begins_blank(text.substr(at))) at += first_character(text.substr(at)).size();
  return at;
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

/// Puts each character in upper case if begins() is true for the character before it (nullptr: there is
/// none), otherwise in lower case.
template <class Begins>
std::string cased(std::string_view text, const Begins& begins) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i)
    out += begins(i == 0 ? nullptr : &text[i - 1]) ? upper(text[i]) : lower(text[i]);
  return out;
}

}  // namespace

std::string dump_json(const Json& value, const JsonStyle& style) {
  Dumper dumper{style};
  dumper.value(value, 0);
  return std::move(dumper.out);
}

std::string python_float(double value) {
  if (!std::isfinite(value)) return format_double(value);
  std::array<char, 400> buffer{};
  const auto print = [&](std::chars_format format) {
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format).ptr;
    return std::string(buffer.data(), end);
  };
  std::string scientific = print(std::chars_format::scientific);
  const std::string_view digits = std::string_view(scientific).substr(scientific.find('e') + 1);
  const int64_t exponent = *parse_int(digits.starts_with('+') ? digits.substr(1) : digits);
  if (exponent < -4 || exponent >= 16) return scientific;
  const std::string fixed = print(std::chars_format::fixed);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

std::string python_repr(std::string_view text) {
  const bool apostrophe = text.find('\'') != std::string_view::npos;
  const char mark = apostrophe && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, mark);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r' || c == '\t')
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      append_hex(out.append("\\x"), byte, 2);
    else if (c == '\\' || c == mark)
      out.append(1, '\\').append(1, c);
    else
      out += c;
  }
  return out + mark;
}

size_t find_text(std::string_view text, std::string_view part) {
  const void* const found = ::memmem(text.data(), text.size(), part.data(), part.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

std::vector<uint32_t> character_begins(std::string_view text) {
  std::vector<uint32_t> begins;
  size_t at = 0;
  for (; at < text.size(); at += first_character(text.substr(at)).size())
    begins.push_back(static_cast<uint32_t>(at));
  begins.push_back(static_cast<uint32_t>(at));
  return begins;
}

std::string strip(std::string_view text, const std::optional<std::string>& characters, Side side) {
  std::vector<uint32_t> taken;
  for (std::string_view rest = characters ? *characters : std::string_view(); !rest.empty();) {
    const CodePoint c = code_point_at(rest);
    taken.push_back(c.value);
    rest.remove_prefix(c.bytes);
  }
  std::sort(taken.begin(), taken.end());
  const auto goes = [&](std::string_view character) {
    const uint32_t code = code_point_at(character).value;
    return characters ? std::binary_search(taken.begin(), taken.end(), code) : is_python_space(code);
  };
  while (side != Side::kRight && !text.empty() && goes(first_character(text)))
    text.remove_prefix(first_character(text).size());
  while (side != Side::kLeft && !text.empty() && goes(last_character(text)))
    text.remove_suffix(last_character(text).size());
  return std::string(text);
}

std::vector<std::string> split(std::string_view text, const std::optional<std::string>& separator,
                               int64_t max) {
  std::vector<std::string> out;
  const auto may_cut = [&] { return max < 0 || static_cast<int64_t>(out.size()) < max; };
  if (separator) {
    for (size_t found = find_text(text, *separator); found != std::string_view::npos && may_cut();
         found = find_text(text, *separator)) {
      out.emplace_back(text.substr(0, found));
      text.remove_prefix(found + separator->size());
    }
    out.emplace_back(text);
    return out;
  }
  while (true) {
    while (!text.empty() && begins_blank(text)) text.remove_prefix(first_character(text).size());
    if (text.empty()) return out;
    const size_t size = may_cut() ? word_size(text) : text.size();
    out.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
}

std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t max) {
  std::string out;
  const auto may = [&] { return max < 0 || max-- > 0; };
  while (out.size() <= kMaxText) {
    const size_t found = from.empty() ? 0 : find_text(text, from);
    if (found == std::string_view::npos || !may()) break;
    out.append(text.substr(0, found)).append(to);
    text.remove_prefix(found + from.size());
    if (!from.empty()) continue;
    if (text.empty()) break;
    out.append(first_character(text));
    text.remove_prefix(first_character(text).size());
  }
  return std::move(out.append(text));
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}
bool has_ascii_case(std::string_view text) {
  // Signs of Latin-1, dashes and quotes; kana, ideographs and their punctuation, Yi; Hangul; compatibility
  // ideographs; pictures; further planes of ideographs. None of them is white space.
  constexpr std::pair<uint32_t, uint32_t> kCaseless[] = {
      {0xa1, 0xa9},     {0xab, 0xb4},       {0xb6, 0xb9},      {0xbb, 0xbf},
      {0x2010, 0x2027}, {0x2030, 0x205e},   {0x3001, 0xa4cf},  {0xac00, 0xd7a3},
      {0xf900, 0xfaff}, {0x1f300, 0x1faff}, {0x20000, 0x3ffff}};
  for (; !text.empty();) {
    const CodePoint c = code_point_at(text);
    text.remove_prefix(c.bytes);
    const auto is_in = [&](const auto& range) { return c.value >= range.first && c.value <= range.second; };
    if (c.value >= 0x80 && std::none_of(std::begin(kCaseless), std::end(kCaseless), is_in)) return false;
  }
  return true;
}
std::string lower(std::string_view text) {
  std::string out;
  append_lower(text, out);
  return out;
}
std::string upper(std::string_view text) {
  return cased(text, [](const char*) { return true; });
}
std::string capitalized(std::string_view text) {
  return cased(text, [](const char* before) { return before == nullptr; });
}
std::string titled(std::string_view text) {
  return cased(text, [](const char* before) { return before == nullptr || !is_letter(*before); });
}
std::string titled_as_jinja(std::string_view text) {
  constexpr std::string_view kBetween(" \t\n\v\f\r\x1c\x1d\x1e\x1f-({[<");
  return cased(text, [&](const char* before) {
    return before == nullptr || kBetween.find(*before) != std::string_view::npos;
  });
}

}  // namespace megalith::jinja
