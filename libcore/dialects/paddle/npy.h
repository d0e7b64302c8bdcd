#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace megalith {

/// A one-dimensional array of little-endian integers.
struct NpyArray {
  std::string_view bytes;  // bytes of the elements, in the file
  char kind;               // 'i': signed; 'u': unsigned
  size_t width;            // size of an element in bytes

  size_t size() const { return bytes.size() / width; }
  int64_t at(size_t i) const {
    uint64_t raw = 0;
    std::memcpy(&raw, bytes.data() + i * width, width);
    const size_t unused = 64 - 8 * width;
    return kind == 'i' ? static_cast<int64_t>(raw << unused) >> unused : static_cast<int64_t>(raw);
  }
};

/// Parses a file in numpy's format (numpy.lib.format, versions 1 to 3). Strict: numpy accepts every file that
/// this accepts, and reads the same values. Messages begin with `where`. kData.
NpyArray parse_npy(std::string_view file, const std::string& where);

}  // namespace megalith
