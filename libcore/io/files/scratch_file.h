#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/io/files/kept_bytes.h"

namespace megalith {

/// Stores bytes, which can be read back from the beginning as often as needed. The last bytes, at most 1 MiB,
/// are in memory; earlier ones are in a nameless file in `folder`, which vanishes with this object or with
/// the process. Throws kIo.
class ScratchFile {
 public:
  explicit ScratchFile(std::string folder) : folder_(std::move(folder)) {}
  /// Stores the bytes in the file `path`, which stays, so that a later object can continue it. Continues
  /// after the kept bytes. Throws kData if the file has fewer bytes than that, or different ones.
  ScratchFile(std::string path, const KeptBytes& kept);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void append(const void* data, size_t bytes);
  /// Writes and syncs all bytes, so that they survive a power failure. Returns what a later object needs to
  /// continue after them. Only for an object with a path: a nameless file vanishes with the process.
  KeptBytes save();
  uint64_t size() const { return written_ + buffer_.size(); }
  /// Passes all bytes to `take`, in order, in blocks of at most 1 MiB. The size of each block but the last is
  /// a multiple of 64 bytes.
  void read(const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  void take_kept(const KeptBytes& kept);
  void flush();
  void write_buffer() const;
  void read_at(uint64_t place, std::span<std::byte> out) const;

  std::string folder_;             // the folder of the nameless file, or the path of the named one
  std::vector<std::byte> buffer_;  // the newest bytes
  int descriptor_ = -1;
  uint64_t written_ = 0;       // bytes in the file
  std::optional<Xxh64> hash_;  // hash of the bytes in the file, if the file has a name
};

}  // namespace megalith
