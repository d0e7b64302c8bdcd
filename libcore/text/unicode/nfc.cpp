#include "libcore/text/unicode/nfc.h"

#include "libcore/base/utf8.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/forms.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

// The first byte of U+0300. Characters with a lower first byte need not be looked up: none of them changes or
// combines with what precedes it.
constexpr unsigned char kFirstThatMayChange = 0xCC;

/// The first character at `from` or after it that may change, or the end.
size_t find_change(std::string_view utf8, size_t from) {
  for (size_t at = from; at < utf8.size();) {
    if (static_cast<unsigned char>(utf8[at]) < kFirstThatMayChange) {
      ++at;
      continue;
    }
    const CodePoint c = code_point_at(utf8.substr(at));
    if (char_traits(c.value).composition() == Composition::kChanges) return at;
    at += c.bytes;
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
