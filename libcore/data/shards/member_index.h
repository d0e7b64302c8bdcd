#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/io/files/file.h"

namespace megalith {

/// Where the members of a compressed file begin that can be decompressed without those before them. Two kinds
/// of files say so: zstd files with a seek table at their end (zstd's contrib/seekable_format), and BGZF, a
/// gzip file of blocks of at most 64 KiB, each with its size in its header (samtools' bgzip).
class MemberIndex {
 public:
  /// Nothing if the file is not of either kind. kNoInput, kIo.
  static std::optional<MemberIndex> of(const std::string& path);

  /// The first byte at or behind `byte` at which a member begins; the file's size if none does. BGZF is read
  /// near `byte` only; kData if there is no block within reach, so that the file is damaged.
  uint64_t at_or_behind(uint64_t byte) const;

 private:
  explicit MemberIndex(const std::string& path) : path_(path) {}

  std::string path_;
  std::vector<uint64_t> begins_;  // of zstd's frames; empty: the file is BGZF
};

}  // namespace megalith
