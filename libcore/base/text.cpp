#include "libcore/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <system_error>

namespace megalith {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator, begin)) {
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out += separator;
    out += parts[i];
  }
  return out;
}

std::string lower_ascii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  return out;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t good = valid_utf8_prefix(text);
    for (char c : text.substr(0, good)) {
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        char hex[8];
        std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        out += hex;
      } else {
        out += c;
      }
    }
    text.remove_prefix(good);
    if (!text.empty()) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
      out += hex;
      text.remove_prefix(1);
    }
  }
  return out + '"';
}

std::string shortened(std::string_view text, size_t max) {
  if (text.size() <= max) return std::string(text);
  size_t end = max;
  // At most three steps back, because a code point has no more bytes after its first one.
  while (end > 0 && max - end < 3 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  if ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) end = max;  // no UTF-8
  return std::string(text.substr(0, end)) + "…";
}

namespace {
template <class T>
std::optional<T> parse_whole(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::string print(const char* format, int digits, double value) {
  char buffer[400];
  const int n = std::snprintf(buffer, sizeof buffer, format, digits, value);
  return {buffer, static_cast<size_t>(std::min<int>(n, static_cast<int>(sizeof buffer) - 1))};
}
}  // namespace

std::optional<int64_t> parse_int(std::string_view text) {
  return parse_whole<int64_t>(text);
}
std::optional<double> parse_double(std::string_view text) {
  return parse_whole<double>(text);
}

std::string format_double(double value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

std::string format_fixed(double value, int digits) {
  return print("%.*f", digits, value);
}
std::string format_scientific(double value, int digits) {
  return print("%.*E", digits, value);
}

std::string format_count(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string format_bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (std::fabs(bytes) >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return format_fixed(bytes, unit == 0 ? 0 : 2) + ' ' + kUnits[unit];
}

std::string format_duration(double seconds) {
  if (seconds < 60) return format_fixed(seconds, 1) + " s";
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  char buffer[64];
  if (whole < 3600)
    std::snprintf(buffer, sizeof buffer, "%d min %02d s", static_cast<int>(whole / 60),
                  static_cast<int>(whole % 60));
  else
    std::snprintf(buffer, sizeof buffer, "%lld h %02d min", static_cast<long long>(whole / 3600),
                  static_cast<int>(whole % 3600 / 60));
  return buffer;
}

namespace {
/// The Damerau-Levenshtein distance (optimal string alignment): a swap of neighbours costs one edit, not two.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above.back();
}
}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  size_t min_distance = std::max<size_t>(word.size() / 3, 1) + 1;
  for (const std::string& candidate : candidates) {
    if (std::min(word.size(), candidate.size()) < 3) continue;  // any two short words are neighbours
    const size_t distance = edit_distance(word, candidate);
    if (distance < min_distance) {
      min_distance = distance;
      best = candidate;
    }
  }
  return best;
}

namespace {
/// A row of table 3-7 of the Unicode standard: first bytes of well-formed sequences, their length, and what
/// the second byte may be; the others are 0x80 to 0xBF.
struct Utf8Row {
  unsigned char lead_low, lead_high;
  size_t bytes;
  unsigned char second_low = 0x80, second_high = 0xBF;
};
constexpr Utf8Row kUtf8Rows[] = {
    {0x00, 0x7F, 1},
    {0xC2, 0xDF, 2},
    {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3},
    {0xED, 0xED, 3, 0x80, 0x9F},
    {0xEE, 0xEF, 3},
    {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4},
    {0xF4, 0xF4, 4, 0x80, 0x8F},
};
/// The row of each first byte, or one of no bytes.
constexpr auto kUtf8RowOf = [] {
  std::array<Utf8Row, 256> rows{};
  for (const Utf8Row& row : kUtf8Rows)
    for (size_t lead = row.lead_low; lead <= row.lead_high; ++lead) rows[lead] = row;
  return rows;
}();

/// Bytes of the sequence that starts at `bytes[0]`, or 0 when it is no valid UTF-8.
size_t utf8_sequence(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const Utf8Row& row = kUtf8RowOf[at(0)];
  if (row.bytes <= 1) return row.bytes;
  if (row.bytes > bytes.size() || at(1) < row.second_low || at(1) > row.second_high) return 0;
  for (size_t i = 2; i < row.bytes; ++i)
    if ((at(i) & 0xC0) != 0x80) return 0;
  return row.bytes;
}
}  // namespace

size_t valid_utf8_prefix(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t n = utf8_sequence(bytes.substr(at));
    if (n == 0) break;
    at += n;
  }
  return at;
}

char* write_utf8(char* out, uint32_t c) {
  const auto put = [&](uint32_t byte) { *out++ = static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
  return out;
}

int64_t count_code_points(std::string_view utf8) {
  int64_t n = 0;
  for (const char c : utf8) n += static_cast<signed char>(c) >= -64;  // not one that continues another
  return n;
}

void append_utf8(std::string& out, uint32_t code_point) {
  char bytes[4];
  out.append(bytes, write_utf8(bytes, code_point));
}

namespace {
/// Bytes at the start of `bytes`, which begin no valid sequence, that are the beginning of one (at least 1).
size_t maximal_subpart(std::string_view bytes) {
  const auto at = [&](size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u; };
  const auto tail = [&](size_t i) { return (at(i) & 0xC0) == 0x80; };
  const unsigned lead = at(0);
  if (lead < 0xE0 || lead > 0xF4 || !tail(1)) return 1;
  const bool second_fits = lead == 0xE0   ? at(1) >= 0xA0
                           : lead == 0xED ? at(1) <= 0x9F
                           : lead == 0xF0 ? at(1) >= 0x90
                           : lead == 0xF4 ? at(1) <= 0x8F
                                          : true;
  if (!second_fits) return 1;
  return lead >= 0xF0 && tail(2) ? 3 : 2;
}
}  // namespace

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const size_t good = valid_utf8_prefix(bytes);
    out += bytes.substr(0, good);
    bytes.remove_prefix(good);
    if (bytes.empty()) break;
    out += "\xEF\xBF\xBD";
    bytes.remove_prefix(maximal_subpart(bytes));
  }
  return out;
}

}  // namespace megalith
