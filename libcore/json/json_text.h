#pragma once

#include <cstddef>

#include "libcore/base/machine/isa.h"

namespace megalith {

/// Reads what is between the quotes of a JSON string, many bytes at a time. UTF-8 is not checked.
struct JsonText {
  struct Stop {
    const char* at;  // the first byte that was not read
    char* out;       // after the last byte that was written
  };
  /// The first quote, backslash or control character of [at, end), or end.
  const char* (*find_special)(const char* at, const char* end);
  /// Copies [at, end) to `out` with escapes decoded, and stops at the first of: a quote; a control character;
  /// a backslash that does not begin an escape, or \u of half a surrogate pair; end. Writes at most stop.at -
  /// at bytes and spoils up to kSlack bytes after them: whole vectors are stored. Input and output must not
  /// overlap.
  Stop (*decode)(const char* at, const char* end, char* out);

  static constexpr size_t kSlack = 64;
};

/// The fastest implementation for `isa`.
const JsonText& json_text(Isa isa);

extern const JsonText kJsonTextAvx2, kJsonTextAvx512Vbmi2;

}  // namespace megalith
