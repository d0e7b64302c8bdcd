#include "libcore/text/unicode/forms.h"

#include <cstdlib>
#include <memory>
#include <new>

#include <utf8proc.h>

#include "libcore/text/unicode/reference_chars.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

struct Free {
  void operator()(utf8proc_uint8_t* text) const { std::free(text); }
};

/// Appends what utf8proc makes of `part` with these options.
void append_mapped(std::string_view part, int options, std::string& out) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(part.data()),
                                              static_cast<utf8proc_ssize_t>(part.size()), &mapped,
                                              static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(mapped);
  if (bytes == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (bytes < 0)  // not UTF-8, which callers exclude
    out += part;
  else
    out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(bytes));
}

/// The length of the run of characters at the start of `utf8` that decompose, or that do not.
size_t run_of(bool decomposes, std::string_view utf8) {
  size_t at = 0;
  while (at < utf8.size()) {
    const CodePoint c = code_point_at(utf8.substr(at));
    if (reference_char(c.value).decomposes() != decomposes) break;
    at += c.bytes;
  }
  return at;
}

/// The code point that utf8proc is asked for, whose Unicode is older than that of the reference.
utf8proc_int32_t known(uint32_t code_point) {
  constexpr utf8proc_int32_t kSomeMark = 0x300, kSomePrefix = 0x600, kSomeLetter = 'a';
  const ReferenceChar traits = reference_char(code_point);
  const auto c = static_cast<utf8proc_int32_t>(code_point);
  const auto kind = utf8proc_get_property(c)->boundclass;
  if (traits.joins_next_letter()) return kSomePrefix;
  if (kind == UTF8PROC_BOUNDCLASS_PREPEND) return kSomeLetter;
  return kind == UTF8PROC_BOUNDCLASS_OTHER && traits.joins_letter() ? kSomeMark : c;
}

}  // namespace

std::string_view decompose(Decomposition form, std::string_view utf8, std::string& storage) {
  const int options =
      UTF8PROC_DECOMPOSE | (form == Decomposition::kNfkd ? static_cast<int>(UTF8PROC_COMPAT) : 0);
  size_t at = run_of(false, utf8);
  if (at == utf8.size()) return utf8;
  storage.assign(utf8.substr(0, at));
  while (at < utf8.size()) {
    const std::string_view changes = utf8.substr(at, run_of(true, utf8.substr(at)));
    append_mapped(changes, options, storage);
    at += changes.size();
    const size_t same = run_of(false, utf8.substr(at));
    storage += utf8.substr(at, same);
    at += same;
  }
  return storage;
}

void append_composed(std::string_view utf8, std::string& out) {
  append_mapped(utf8, UTF8PROC_COMPOSE, out);
}

size_t cluster_end(std::string_view utf8) {
  const auto is_ascii = [&](size_t at) { return at < utf8.size() && static_cast<uint8_t>(utf8[at]) < 0x80; };
  if (is_ascii(0) && (utf8.size() == 1 || is_ascii(1))) return utf8.starts_with("\r\n") ? 2 : 1;
  utf8proc_int32_t state = 0;
  CodePoint before = code_point_at(utf8);
  for (size_t at = before.bytes; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8.substr(at));
    if (utf8proc_grapheme_break_stateful(known(before.value), known(c.value), &state)) return at;
    at += c.bytes;
    before = c;
  }
  return utf8.size();
}

}  // namespace megalith
