#include "libcore/text/pretokenize/pretokenizer.h"

#include "libcore/base/error.h"
#include "libcore/base/machine/isa.h"
#include "libcore/text/pretokenize/gpt2_scan.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

constexpr KindSet kLetters = KindSet::of(CharKind::kUpper, CharKind::kLower, CharKind::kLetter);
constexpr KindSet kNumbers = KindSet::of(CharKind::kNumber);
constexpr KindSet kSpaces = KindSet::of(CharKind::kSpace);
constexpr KindSet kOthers = ~(kLetters | kNumbers | kSpaces);

struct Char {
  CharKind kind;
  size_t bytes;
};

Char char_at(const char* at, const char* end) {
  const auto byte = static_cast<unsigned char>(*at);
  if (byte < 0x80) return {ascii_traits(byte).kind(), 1};
  const CodePoint c = code_point_at({at, end});
  return {char_traits(c.value).kind(), c.bytes};
}

/// The kinds that an alternative of the pattern matches together with `kind`.
KindSet class_of(CharKind kind) {
  for (const KindSet kinds : {kLetters, kNumbers, kSpaces})
    if (kinds.has(kind)) return kinds;
  return kOthers;
}

/// The end of the run of characters of these kinds that starts at `at`.
const char* run_end(const char* at, const char* end, KindSet kinds) {
  while (at < end) {
    const Char c = char_at(at, end);
    if (!kinds.has(c.kind)) break;
    at += c.bytes;
  }
  return at;
}

/// Length of the contraction at `at` ('s 't 're 've 'm 'll 'd), or 0.
size_t contraction(const char* at, const char* end) {
  if (end - at < 2 || *at != '\'') return 0;
  const char first = at[1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (end - at < 3) return 0;
  const char second = at[2];
  return ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l') ? 3 : 0;
}

/// The end of the pretoken that begins with a run of spaces at `begin`. \s+(?!\S) leaves the last space to
/// what follows, unless it is the only space (then \s+ matches) or the text ends.
const char* spaces_end(const char* begin, const char* end) {
  const char* last = begin;
  const char* at = begin;
  while (at < end) {
    const Char c = char_at(at, end);
    if (c.kind != CharKind::kSpace) return last == begin ? at : last;
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
  if (*at == ' ' && at + 1 < end) ++at;  // the optional space of " ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
  const Char first = char_at(at, end);
  const char* const stop = first.kind == CharKind::kSpace
                               ? spaces_end(begin, end)
                               : run_end(at + first.bytes, end, class_of(first.kind));
  return static_cast<size_t>(stop - begin);
}

void refuse_giant_pretoken(size_t bytes) {
  fail(ErrorKind::kData, "a text holds ", bytes, " bytes without a boundary between words; at most ",
       UINT32_MAX, " can be encoded");
}

FindPretokens pretokenizer(PretokenPattern pattern) {
  switch (pattern) {
    case PretokenPattern::kGpt2:
      return find_gpt2(chosen_isa());
  }
  fail(ErrorKind::kInternal, "no pretokenizer for pattern ", static_cast<int>(pattern));
}

}  // namespace megalith
