#pragma once

#include <cstdint>
#include <string>

namespace megalith {

/// Bytes and where in a file they belong.
struct FilePart {
  uint64_t offset;
  std::string bytes;
};

}  // namespace megalith
