#include "libcore/text/pretokenize/pretokenizer.h"

#include <array>

#include "libcore/base/machine/isa.h"
#include "libcore/text/pretokenize/gpt2_scan.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

constexpr auto kAsciiClass = [] {
  std::array<CharClass, 128> table{};
  for (int c = 'a'; c <= 'z'; ++c)
    table[static_cast<size_t>(c)] = table[static_cast<size_t>(c - 32)] = CharClass::kLetter;
  for (int c = '0'; c <= '9'; ++c) table[static_cast<size_t>(c)] = CharClass::kNumber;
  for (char c : std::string_view("\t\n\v\f\r ")) table[static_cast<unsigned char>(c)] = CharClass::kSpace;
  return table;
}();

struct Char {
  CharClass kind;
  size_t bytes;
};

Char char_at(const char* at, const char* end) {
  const auto byte = static_cast<unsigned char>(*at);
  if (byte < 0x80) return {kAsciiClass[byte], 1};
  const CodePoint c = code_point_at({at, end});
  return {char_class(c.value), c.bytes};
}

/// The end of the run of characters of `kind` that starts at `at`.
const char* run_end(const char* at, const char* end, CharClass kind) {
  while (at < end) {
    const Char c = char_at(at, end);
    if (c.kind != kind) break;
    at += c.bytes;
  }
  return at;
}

/// Bytes of the contraction at `at` ('s 't 're 've 'm 'll 'd), or 0.
size_t contraction(const char* at, const char* end) {
  if (end - at < 2 || *at != '\'') return 0;
  const char first = at[1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (end - at < 3) return 0;
  const char second = at[2];
  return ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l') ? 3 : 0;
}

/// The end of the pretoken that a run of spaces at `begin` gives: \s+(?!\S) leaves the last space to what
/// follows, unless it is the only one (then \s+) or the text ends.
const char* spaces_end(const char* begin, const char* end) {
  const char* last = begin;
  const char* at = begin;
  while (at < end) {
    const Char c = char_at(at, end);
    if (c.kind != CharClass::kSpace) return last == begin ? at : last;
    last = at;
    at += c.bytes;
  }
  return at;
}

}  // namespace

size_t gpt2_pretoken(std::string_view utf8) {
  const char* const begin = utf8.data();
  const char* const end = begin + utf8.size();
  if (const size_t bytes = contraction(begin, end)) return bytes;
  const char* at = begin;
  if (*at == ' ' && at + 1 < end) ++at;  // " ?" of the three classes of words
  const Char first = char_at(at, end);
  const char* const stop =
      first.kind == CharClass::kSpace ? spaces_end(begin, end) : run_end(at + first.bytes, end, first.kind);
  return static_cast<size_t>(stop - begin);
}

FindPretokens pretokenizer(PretokenPattern pattern) {
  switch (pattern) {
    case PretokenPattern::kGpt2:
      return find_gpt2(chosen_isa());
  }
  fail(ErrorKind::kInternal, "no pretokenizer for pattern ", static_cast<int>(pattern));
}

}  // namespace megalith
