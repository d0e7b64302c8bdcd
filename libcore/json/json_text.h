#pragma once

#include <cstddef>

#include "libcore/base/machine/isa.h"

namespace megalith {

/// What lies between the quotes of a JSON string, read many bytes at a time. UTF-8 is not checked.
struct JsonText {
  struct Stop {
    const char* at;  // the first byte that was not read
    char* out;       // after the last one that was written
  };
  /// The first quote, backslash or control character of [at, end), or end.
  const char* (*find_special)(const char* at, const char* end);
  /// Copies [at, end) to `out`, escapes decoded, and stops at the first of: a quote; a control character; a
  /// backslash that begins no escape, or \u of half a surrogate pair; end. At most stop.at - at bytes are
  /// written, and up to kSlack after them are spoilt, because whole vectors are stored. The two must not
  /// overlap.
  Stop (*decode)(const char* at, const char* end, char* out);

  static constexpr size_t kSlack = 64;
};

/// The fastest for `isa`.
const JsonText& json_text(Isa isa);

extern const JsonText kJsonTextAvx2, kJsonTextAvx512Vbmi2;

}  // namespace megalith
