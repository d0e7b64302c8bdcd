#pragma once

#include <cstddef>

#include "libcore/base/machine/isa.h"

namespace megalith {

/// Functions that read the inside of a JSON string, many bytes at a time. They do not check UTF-8.
struct JsonText {
  struct Stop {
    const char* at;  // the first byte that was not read
    char* out;       // after the last byte that was written
  };
  /// Returns the first quote, backslash or control character in [at, end); end if there is none.
  const char* (*find_special)(const char* at, const char* end);
  /// Copies [at, end) to `out` with escapes decoded. Stops at the first quote, control character, backslash
  /// that does not begin a valid escape, or \u escape of a surrogate (the caller decodes pairs); otherwise at
  /// `end`. Writes at most stop.at - at bytes of text, and overwrites up to kSlack bytes after them with
  /// garbage, since it stores whole vectors. Input and output must not overlap.
  Stop (*decode)(const char* at, const char* end, char* out);

  static constexpr size_t kSlack = 64;
};

/// The fastest implementation for `isa`.
const JsonText& json_text(Isa isa);

extern const JsonText kJsonTextAvx2, kJsonTextAvx512Vbmi2;

}  // namespace megalith
