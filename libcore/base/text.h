#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

std::vector<std::string> split(std::string_view text, char separator);  // splitting "" gives one empty part
std::string_view trim(std::string_view text);                           // removes blanks, tabs, CR and LF
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string lower_ascii(std::string_view text);  // changes only A to Z
/// Appends the lowest `digits` hexadecimal digits of `value`, in lower case and padded with zeros at the
/// front.
void append_hex(std::string& out, uint64_t value, int digits);
std::string escape_markup(std::string_view text);  // for text and quoted attributes in HTML and SVG
std::string quote(
    std::string_view text);  // "text" for messages, with control characters and bad UTF-8 escaped
/// The beginning of `text`, for a message: at most `max` bytes, followed by "…" if there were more. UTF-8
/// text does not end inside a code point.
std::string shortened(std::string_view text, size_t max);

/// Parses the whole of `text` as a decimal number. Returns nothing if it contains blanks or other characters,
/// or if the number is out of range.
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);  // also "inf", "nan"

/// The shortest text that reads back as the same double ("0.1", "1e-08", "3").
std::string format_double(double value);
/// Fixed-point or scientific notation with `digits` digits after the point, like printf's %.*f and %.*E.
std::string format_fixed(double value, int digits);
std::string format_scientific(double value, int digits);
std::string format_count(int64_t value);      // 1,234,567
std::string format_bytes(double bytes);       // "1.50 GiB"
std::string format_duration(double seconds);  // "4.2 s", "3 min 20 s", "2 h 05 min"

/// The candidate with the smallest edit distance to `word`, for "did you mean". None if that distance exceeds
/// a third of the word's length: the user then meant something else.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace megalith
