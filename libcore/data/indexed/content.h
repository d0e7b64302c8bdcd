#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/hash/xxh64.h"

namespace megalith {

/// A part of a file: its length in bytes, and the hash that these bytes had when they were written.
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

/// Whether the sizes of the parts add up to `file_size`.
bool cover(const std::vector<ContentPart>& parts, uint64_t file_size);

/// Checks the bytes of a file against the hashes of its parts while the file is read.
class ContentChecker {
 public:
  /// `path` appears in messages. `parts` must outlive this object. Throws kData unless the sizes of the parts
  /// add up to `file_size`.
  ContentChecker(std::string path, const std::vector<ContentPart>& parts, uint64_t file_size);

  /// Hashes the next bytes of the file. Throws kData at the end of a part whose hash differs.
  void update(const void* data, size_t bytes);

 private:
  std::string path_;
  const std::vector<ContentPart>& parts_;
  size_t part_ = 0;
  uint64_t done_ = 0, begin_ = 0;  // bytes hashed of the current part; offset in the file at which it begins
  Xxh64 hash_;
};

}  // namespace megalith
