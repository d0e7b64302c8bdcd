#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace megalith {

/// A place in a file between two bytes of its (decompressed) data.
struct StreamPlace {
  uint64_t at = 0;    // byte of the file; if the file is compressed, one at which a member begins
  uint64_t skip = 0;  // bytes of the decompressed data between that member's begin and the place; else 0
  auto operator<=>(const StreamPlace&) const =
      default;  // NOLINT(modernize-use-nullptr): no pointer is compared
  template <class V>
  void fields(V&& v) {  // see json/json_fields.h
    v("byte", at);
    v("skip", skip);
  }
};

/// The part of a file's data between two places. Without `end` it reaches to the end of the file.
struct StreamPart {
  StreamPlace begin = {};
  std::optional<StreamPlace> end = {};
};

}  // namespace megalith
