#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/hash/xxh64.h"

namespace megalith {

/// A run of bytes of a file and what they were when written.
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

/// Whether the parts are `file_size` bytes together.
bool cover(const std::vector<ContentPart>& parts, uint64_t file_size);

/// Compares the bytes of a file, as they pass by, with the parts that it was written in.
class ContentChecker {
 public:
  /// `path` is for messages; `parts` must live as long. kData when they are not `file_size` bytes together.
  ContentChecker(std::string path, const std::vector<ContentPart>& parts, uint64_t file_size);

  /// The next bytes. kData at the end of a part that is not as it was written.
  void update(const void* data, size_t bytes);

 private:
  std::string path_;
  const std::vector<ContentPart>& parts_;
  size_t part_ = 0;
  uint64_t done_ = 0, begin_ = 0;  // of the part; where it begins in the file
  Xxh64 hash_;
};

}  // namespace megalith
