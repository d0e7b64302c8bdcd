#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/json/json.h"

/// Python's operations on texts, as far as templates need them. Texts are UTF-8; positions count characters,
/// never bytes.
namespace megalith::jinja {

/// Arguments of json.dumps.
struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<int64_t> indent;  // at most kMaxIndent
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
};
constexpr int64_t kMaxIndent = 1000;
constexpr size_t kMaxText = size_t{64} << 20;  // most bytes of a text that a template may produce
/// json.dumps(). A result of more than kMaxText bytes is incomplete: it ends somewhere beyond kMaxText.
std::string dump_json(const Json& value, const JsonStyle& style);

/// repr() of a float.
std::string python_float(double value);
/// repr() of a text whose characters beyond ASCII can be printed.
std::string python_repr(std::string_view text);

enum class Side { kLeft, kRight, kBoth };
/// The byte at which each character of `text` begins, and finally the end of the text. 32 bits each, so
/// `text` must be shorter than 4 GiB.
std::vector<uint32_t> character_begins(std::string_view text);
/// str.strip() and its variants; without `characters`, strips white space.
std::string strip(std::string_view text, const std::optional<std::string>& characters, Side side);
/// str.split(); without `separator` (which must not be empty), splits at runs of white space. Cuts at most
/// `max` times; `max` below 0: no limit.
std::vector<std::string> split(std::string_view text, const std::optional<std::string>& separator,
                               int64_t max);
/// Where `part` begins in `text`, or npos. Takes at most time proportional to the sum of both lengths.
size_t find_text(std::string_view text, std::string_view part);
/// str.replace(), at most `max` times; `max` below 0: no limit. A result of more than kMaxText bytes is
/// truncated somewhere beyond kMaxText, since the renderer refuses it anyway.
std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t max);

bool is_ascii(std::string_view text);
std::string lower(std::string_view text);  // str.lower()
/// Whether the characters beyond ASCII are known to have no case: signs, pictures, East Asian scripts.
bool has_ascii_case(std::string_view text);
// The following functions are for such texts.
std::string upper(std::string_view text);        // str.upper()
std::string capitalized(std::string_view text);  // str.capitalize()
std::string titled(std::string_view text);       // str.title()
/// Jinja's filter "title": a letter after an apostrophe is lower case.
std::string titled_as_jinja(std::string_view text);

}  // namespace megalith::jinja
