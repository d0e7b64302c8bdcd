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

/// Bytes put aside and read back from the front, as often as wanted: in memory up to a MiB, beyond it in a
/// nameless file in `folder`, which is gone with this object or with the process. Throws kIo.
class ScratchFile {
 public:
  explicit ScratchFile(std::string folder) : folder_(std::move(folder)) {}
  /// In the file `path`, which is left, so that a later object goes on after the first bytes that it holds.
  /// kData when there are fewer, or other ones.
  ScratchFile(std::string path, const KeptBytes& kept);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void append(const void* data, size_t bytes);
  /// Syncs: all bytes survive a power failure, and a later object can go on after them. Only for a file with
  /// a name, because a nameless one goes with the process.
  KeptBytes save();
  uint64_t size() const { return written_ + buffer_.size(); }
  /// All bytes in order, in blocks; each but the last holds a multiple of 64 bytes and at most a MiB.
  void read(const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  void take_kept(const KeptBytes& kept);
  void flush();
  void write_buffer() const;
  void read_at(uint64_t place, std::span<std::byte> out) const;

  std::string folder_;             // or the file's path
  std::vector<std::byte> buffer_;  // the newest bytes
  int descriptor_ = -1;
  uint64_t written_ = 0;       // bytes in the file
  std::optional<Xxh64> hash_;  // of them, when the file has a name
};

}  // namespace megalith
