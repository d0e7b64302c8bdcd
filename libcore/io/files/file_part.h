#pragma once

#include <cstdint>
#include <string>

namespace megalith {

/// Bytes and the offset at which they belong in a file.
struct FilePart {
  uint64_t offset;
  std::string bytes;
};

}  // namespace megalith
