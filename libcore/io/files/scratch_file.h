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

/// Stores bytes and reads them back from the front, as often as needed: up to a MiB in memory, beyond that in
/// a file without a name in `folder`, which vanishes with this object or with the process. Throws kIo.
class ScratchFile {
 public:
  explicit ScratchFile(std::string folder) : folder_(std::move(folder)) {}
  /// Stores in the file `path`, which stays, so that a later object can continue after its first bytes. kData
  /// if there are fewer, or different ones.
  ScratchFile(std::string path, const KeptBytes& kept);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void append(const void* data, size_t bytes);
  /// All bytes survive a power failure, and a later object can continue after them. Only for a file with a
  /// name: others vanish with the process.
  KeptBytes save();
  uint64_t size() const { return written_ + buffer_.size(); }
  /// All bytes in order, in blocks. Each block but the last holds a multiple of 64 bytes, and at most a MiB.
  void read(const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  void take_kept(const KeptBytes& kept);
  void flush();
  void write_buffer() const;
  void read_at(uint64_t place, std::span<std::byte> out) const;

  std::string folder_;             // or the path of the file
  std::vector<std::byte> buffer_;  // the newest bytes
  int descriptor_ = -1;
  uint64_t written_ = 0;       // bytes in the file
  std::optional<Xxh64> hash_;  // of them, if the file has a name
};

}  // namespace megalith
