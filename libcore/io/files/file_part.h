#pragma once

#include <cstdint>
#include <string>

namespace megalith {

/// Bytes and their offset in a file.
struct FilePart {
  uint64_t offset;
  std::string bytes;
};

}  // namespace megalith
