#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/hash/xxh64.h"

namespace megalith {

/// A run of bytes of a file, and their hash when they were written.
struct ContentPart {
  uint64_t bytes = 0;
  std::string xxh64;  // 16 hexadecimal digits
  bool operator==(const ContentPart&) const = default;
  template <class V>
  void fields(V&& v) {
    v("bytes", bytes);
    v("xxh64", xxh64);
  }
};

/// Whether the parts add up to `file_size` bytes.
bool cover(const std::vector<ContentPart>& parts, uint64_t file_size);

/// Compares the bytes of a file, as they are read, with the parts in which it was written.
class ContentChecker {
 public:
  /// `path` is for messages; `parts` must outlive this object. kData if they do not add up to `file_size`
  /// bytes.
  ContentChecker(std::string path, const std::vector<ContentPart>& parts, uint64_t file_size);

  /// The next bytes. kData at the end of a part that differs from what was written.
  void update(const void* data, size_t bytes);

 private:
  std::string path_;
  const std::vector<ContentPart>& parts_;
  size_t part_ = 0;
  uint64_t done_ = 0, begin_ = 0;  // bytes of the part; where the part begins in the file
  Xxh64 hash_;
};

}  // namespace megalith
