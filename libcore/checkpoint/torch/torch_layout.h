#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/checkpoint/torch/pickle_writer.h"
#include "libcore/io/files/file_part.h"

namespace megalith {

/// Pickles a tensor as torch does: a call of torch._utils._rebuild_tensor_v2 with storage number `key`; the
/// tensor is contiguous.
void pickle_tensor(PickleWriter& pickle, const TensorSpec& spec, size_t key);
/// Pickles a dtype as a value of its own: torch.bfloat16.
void pickle_dtype(PickleWriter& pickle, DType dtype);

/// The layout that torch.save's zip format gives a file. Members are stored uncompressed: data.pkl,
/// byteorder, data/0, data/1, …, version. Each storage begins at a multiple of 64 bytes, so that torch can
/// map it. Sizes and CRC-32 are also in the local headers. zip64 is used where a number needs it.
class TorchLayout {
 public:
  /// `root`: the name of the folder in the archive; torch uses the file's name without extension. `storages`:
  /// the number of bytes of data/0, data/1, …
  TorchLayout(std::string root, const std::string& pickle, const std::vector<uint64_t>& storages);

  uint64_t size() const { return size_; }  // of the whole file, in bytes
  /// The offset at which storage i begins.
  uint64_t offset(size_t i) const { return members_[kBefore + i].begin; }
  /// All bytes of the file except the storages. `crcs`: the CRC-32 of each storage. While they are not known,
  /// zeros may be passed: a reader that does not compare CRCs can then already read the file.
  std::vector<FilePart> parts(std::span<const uint32_t> crcs) const;

 private:
  static constexpr size_t kBefore = 2;  // number of members before the storages
  struct Member {
    std::string name, contents;  // `contents` is empty for a storage
    uint64_t header, begin, bytes;
    uint32_t crc;
  };
  void add(const std::string& name, uint64_t bytes, std::string contents);
  static std::string header_of(const Member& member, uint32_t crc);
  std::string directory(std::span<const uint32_t> crcs) const;
  uint32_t crc_of(size_t member, std::span<const uint32_t> crcs) const;

  std::string root_;
  std::vector<Member> members_;
  uint64_t directory_;  // offset of the central directory
  uint64_t size_;
};

}  // namespace megalith
