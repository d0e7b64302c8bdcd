#include "libcore/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <system_error>

#include "libcore/base/utf8.h"

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

void append_hex(std::string& out, uint64_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[(value >> shift) & 15];
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
  for (size_t n = 0; !text.empty(); text.remove_prefix(n)) {
    const size_t character = utf8_sequence(text);
    n = std::max<size_t>(character, 1);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (character == 0 || byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      append_hex(out, byte, 2);
    } else {
      if (byte == '"' || byte == '\\') out += '\\';
      out += text.substr(0, n);
    }
  }
  return out + '"';
}

std::string shortened(std::string_view text, size_t max) {
  if (text.size() <= max) return std::string(text);
  size_t end = max;
  // Goes back at most three bytes to the first byte of a code point, which is followed by at most three
  // others.
  while (end > 0 && max - end < 3 && continues_character(text[end])) --end;
  if (continues_character(text[end])) end = max;  // not UTF-8
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
  const auto whole = static_cast<int64_t>(std::llround(seconds));
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
/// The Damerau-Levenshtein distance (optimal string alignment): exchanging two neighbouring characters costs
/// one edit, not two.
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
    if (std::min(word.size(), candidate.size()) < 3) continue;  // short words have a small distance
    const size_t distance = edit_distance(word, candidate);
    if (distance < min_distance) {
      min_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace megalith
