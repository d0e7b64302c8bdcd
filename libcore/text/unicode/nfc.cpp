#include "libcore/text/unicode/nfc.h"

#include <array>
#include <bit>
#include <cstring>

#include "libcore/base/machine/bytes16.h"
#include "libcore/base/utf8.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/forms.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

// Characters whose first byte is at most the first of these neither change nor combine with what precedes
// them; of those whose first byte is at most the second, some do; and so on in turn. The safe ones are Latin
// to U+02FF, most of Greek, Cyrillic and Armenian, Han and Hangul.
constexpr std::array<uint8_t, 9> kTurns = {0xCB, 0xCE, 0xD1, 0xD2, 0xD5, 0xE3, 0xE9, 0xEA, 0xEE};

/// A bit for each of sixteen bytes: whether it may begin a character that may change.
unsigned doubts_of(Bytes16 bytes) {
  constexpr unsigned kAll = (1U << Bytes16::kBytes) - 1;
  Bytes16 safe = bytes.at_most(kTurns[0]);
  if (safe.bits() == kAll) [[likely]]
    return 0;
  for (size_t i = 1; i < kTurns.size(); ++i) safe = safe ^ bytes.at_most(kTurns[i]);
  return ~safe.bits() & kAll;
}

/// The first character at `from` or after it that may change, or the end.
size_t find_change(std::string_view utf8, size_t from) {
  const auto changes = [&](size_t at) {
    return char_traits(code_point_at(utf8.substr(at)).value).composition() == Composition::kChanges;
  };
  for (size_t at = from; at < utf8.size(); at += Bytes16::kBytes) {
    const size_t left = utf8.size() - at;
    char padded[Bytes16::kBytes] = {};
    if (left < Bytes16::kBytes) std::memcpy(padded, utf8.data() + at, left);
    const char* const bytes = left < Bytes16::kBytes ? padded : utf8.data() + at;
    for (unsigned doubts = doubts_of(Bytes16::load(bytes)); doubts != 0; doubts &= doubts - 1)
      if (const size_t begin = at + static_cast<size_t>(std::countr_zero(doubts)); changes(begin))
        return begin;
  }
  return utf8.size();
}

/// Where the change at `at` begins: at the character before, if that one may combine with what follows;
/// otherwise at `at`.
size_t lead_of(std::string_view utf8, size_t from, size_t at) {
  if (at == from) return at;
  const size_t begin = from + character_begin(utf8.substr(from), at - 1 - from);
  const bool leads =
      char_traits(code_point_at(utf8.substr(begin)).value).composition() == Composition::kMayLead;
  return leads ? begin : at;
}

/// The end of the run of characters that may change, from `at` on.
size_t changes_end(std::string_view utf8, size_t at) {
  while (at < utf8.size()) {
    const CodePoint c = code_point_at(utf8.substr(at));
    if (char_traits(c.value).composition() != Composition::kChanges) break;
    at += c.bytes;
  }
  return at;
}

}  // namespace

std::string_view to_nfc(std::string_view utf8, std::string& storage) {
  storage.clear();
  bool changed = false;
  size_t copied = 0;  // bytes of utf8 that are in storage, once something has changed
  std::string part;
  for (size_t at = find_change(utf8, 0); at < utf8.size();) {
    const size_t begin = lead_of(utf8, copied, at);
    const size_t end = changes_end(utf8, at);
    part.clear();
    append_composed(utf8.substr(begin, end - begin), part);
    if (part != utf8.substr(begin, end - begin)) {
      storage += utf8.substr(copied, begin - copied);
      storage += part;
      copied = end;
      changed = true;
    }
    at = find_change(utf8, end);
  }
  if (!changed) return utf8;
  storage += utf8.substr(copied);
  return storage;
}

}  // namespace megalith
