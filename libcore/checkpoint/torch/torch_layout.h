#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/checkpoint/torch/pickle_writer.h"
#include "libcore/io/files/file_part.h"

namespace megalith {

/// A tensor as torch pickles it: torch._utils._rebuild_tensor_v2 of storage number `key`, contiguous.
void pickle_tensor(PickleWriter& pickle, const TensorSpec& spec, size_t key);
/// A dtype as a value: torch.bfloat16.
void pickle_dtype(PickleWriter& pickle, DType dtype);

/// How torch.save's zip format lays out a file: members stored uncompressed; data.pkl, byteorder, data/0,
/// data/1, …, version; each storage at a multiple of 64 bytes (torch can map it); sizes and CRC-32 also in
/// the local headers; zip64 where a number needs it.
class TorchLayout {
 public:
  /// `root`: the folder in the archive; torch uses the file's name without extension. `storages`: bytes of
  /// data/0, data/1, …
  TorchLayout(std::string root, const std::string& pickle, const std::vector<uint64_t>& storages);

  uint64_t size() const { return size_; }  // of the file
  /// Where storage i begins.
  uint64_t offset(size_t i) const { return members_[kBefore + i].begin; }
  /// All bytes but the storages'. `crcs`: CRC-32 of each storage; zeros as long as they are not known: a
  /// reader that does not compare CRCs can then already read the file.
  std::vector<FilePart> parts(std::span<const uint32_t> crcs) const;

 private:
  static constexpr size_t kBefore = 2;  // members before the storages
  struct Member {
    std::string name, contents;  // a storage has no contents here
    uint64_t header, begin, bytes;
    uint32_t crc;
  };
  void add(const std::string& name, uint64_t bytes, std::string contents);
  static std::string header_of(const Member& member, uint32_t crc);
  std::string directory(std::span<const uint32_t> crcs) const;
  uint32_t crc_of(size_t member, std::span<const uint32_t> crcs) const;

  std::string root_;
  std::vector<Member> members_;
  uint64_t directory_;  // where it begins
  uint64_t size_;
};

}  // namespace megalith
