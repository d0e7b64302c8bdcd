#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/file.h"
#include "libcore/checkpoint/pickle_writer.h"
#include "libcore/checkpoint/safetensors.h"

namespace megalith {

/// A tensor as torch pickles it: torch._utils._rebuild_tensor_v2 of storage number `key`, contiguous.
void pickle_tensor(PickleWriter& pickle, const TensorSpec& spec, size_t key);
/// A dtype as a value: torch.bfloat16.
void pickle_dtype(PickleWriter& pickle, DType dtype);

/// Writes a file of torch.save's zip format: members stored, not compressed; data.pkl, byteorder, data/0,
/// data/1, …, version; each storage at a multiple of 64 bytes (torch can map it); sizes and CRC-32 in the
/// local headers too; zip64 where a number needs it. The file appears in finish().
class TorchWriter {
 public:
  /// `storages`: bytes of data/0, data/1, …
  TorchWriter(std::string path, const std::string& pickle, std::vector<uint64_t> storages);

  /// The next bytes of the storages, in order, whole or in parts; kInternal when there are too many.
  void write(const void* data, size_t bytes);
  void finish(Durable durable = Durable::kNow);

 private:
  struct Member {
    std::string name;
    uint64_t header, bytes;
    uint32_t crc;
  };
  void begin_member(const std::string& name, uint64_t bytes);
  void end_member();  // writes the CRC into its header
  void put_member(const std::string& name, std::string_view contents);
  void next_storage();
  void write_directory();

  AtomicFile file_;
  std::string root_;
  std::vector<uint64_t> storages_;
  std::vector<Member> members_;
  size_t storage_ = 0;    // being written
  uint64_t written_ = 0;  // of its bytes
};

}  // namespace megalith
