#pragma once

#include <cstdint>
#include <optional>

/// Reads and decodes the escapes of JSON strings. None of these functions checks UTF-8.
namespace megalith {

/// Whether a UTF-16 unit is the first (high) or the second (low) of a surrogate pair.
inline bool is_high_surrogate(uint32_t unit) {
  return (unit & 0xFC00) == 0xD800;
}
inline bool is_low_surrogate(uint32_t unit) {
  return (unit & 0xFC00) == 0xDC00;
}

/// Skips plain text and two-character escapes. Returns the first byte in [at, end) that is a quote, a control
/// character, or the backslash of a \u escape or an invalid escape; returns `end` if there is none. Sets
/// `escaped` if it skipped an escape.
char* skip_plain(char* at, char* end, bool& escaped);

/// The low surrogate that the escape at `at` stands for, if there is one (\uDC00 to \uDFFF).
std::optional<uint32_t> read_low_half(const char* at, const char* end);

/// Decodes the escape \uXXXX at `at`, which must have four hexadecimal digits, to UTF-8 at `out`. A surrogate
/// pair is two escapes, which become one character. Moves `at` past what it reads, `out` past what it writes.
void decode_unit(const char*& at, const char* end, char*& out);

/// Decodes [at, end), whose escapes are well-formed, to `out` <= `at`. This is safe in place, since an escape
/// is never shorter than its character. Returns the end of the decoded text. (A lone surrogate gives three
/// bytes that are not valid UTF-8.)
char* unescape(const char* at, const char* end, char* out);

}  // namespace megalith
