#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libcore/base/error.h"

namespace megalith {

/// What part of a Parquet file is read, for messages.
struct ParquetPlace {
  std::string path;
  std::string part;   // "its footer", or a column: "column \"meta.text\""
  uint64_t byte = 0;  // of the file, at which that part begins, from 0
};

/// Throws kData: `found` (and what was wanted) contradicts the format.
template <class... Found>
[[noreturn]] void fail_damaged(const ParquetPlace& place, const Found&... found) {
  fail(ErrorKind::kData, place.path, ": damaged Parquet data in ", place.part, ", from byte ", place.byte,
       " on: ", found..., "; restore the file");
}

/// Throws kData for what the format allows and this reader does not read: `found`, and what is read.
template <class... Found>
[[noreturn]] void fail_unread(const ParquetPlace& place, const Found&... found) {
  fail(ErrorKind::kData, place.path, ": ", place.part, ' ', found..., "; write the file again without that");
}

}  // namespace megalith
