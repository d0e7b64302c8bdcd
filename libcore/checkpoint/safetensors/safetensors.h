#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/io/files/file.h"

namespace megalith {

/// A .safetensors file, mapped. Everything is checked before the first tensor is read: header length, strict
/// JSON without duplicate keys, known types, integer extents, and byte ranges that match the extents and fill
/// the file without gap or overlap. Throws kNoInput, kIo, kData.
class SafetensorsFile final : public TensorFile {
 public:
  /// `writing`: see ReadableFile.
  explicit SafetensorsFile(std::string path, PendingFiles* writing = nullptr);

  const std::string& path() const override { return file_.path(); }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(const Box& box, View out) const override;
  ConstView mapped(const Box& box) const override;

  /// Where a tensor's bytes are in the file.
  struct Range {
    uint64_t begin, end;
  };
  Range range(const StoredTensor& tensor) const;  // `tensor`: an element of tensors()

 private:
  MappedFile file_;                    // used for the header and for mapped()
  ReadableFile bytes_;                 // used for reading tensors
  std::vector<StoredTensor> tensors_;  // sorted by name
  std::vector<Range> ranges_;          // parallel to tensors_
};

struct TensorSpec {
  std::string name;
  DType dtype;
  Shape shape;
  uint64_t bytes() const { return static_cast<uint64_t>(shape.elements()) * size_of(dtype); }
};

/// The order in which the safetensors library writes tensors: by type (widest first), then name.
std::vector<TensorSpec> in_safetensors_order(std::vector<TensorSpec> tensors);

/// The layout of a .safetensors file.
struct SafetensorsLayout {
  /// `tensors` must be in the order of in_safetensors_order(). The header has "__metadata__" {"format":
  /// "pt"}, which transformers requires.
  explicit SafetensorsLayout(const std::vector<TensorSpec>& tensors);

  std::string head;               // the bytes before the first tensor
  std::vector<uint64_t> offsets;  // where each tensor begins in the file
  uint64_t size;                  // of the whole file, in bytes
};

/// Writes a .safetensors file with the layout that the safetensors library gives it, byte for byte: tensors
/// by type (widest first), then name; the header padded with spaces to a multiple of 8. The file gets its
/// name in finish().
class SafetensorsWriter {
 public:
  SafetensorsWriter(std::string path, std::vector<TensorSpec> tensors);

  /// The order in which the tensors must be written.
  const std::vector<TensorSpec>& order() const { return tensors_; }
  /// Where tensor i of order() begins in the file.
  uint64_t offset(size_t i) const { return layout_.offsets[i]; }
  /// Writes the next bytes of tensor `name`; a tensor may be written in several parts. Throws kInternal
  /// unless the tensors come in the order of order().
  void write(std::string_view name, const void* data, size_t bytes);
  /// Syncs the file: on return, its bytes survive a power failure, but it does not have its name yet. Throws
  /// kInternal if a tensor is missing.
  void sync();
  void finish();

 private:
  void require_complete() const;
  void skip_complete();

  AtomicFile file_;
  std::vector<TensorSpec> tensors_;
  SafetensorsLayout layout_;
  size_t next_ = 0;       // index of the tensor being written
  uint64_t written_ = 0;  // number of bytes of that tensor written so far
};

/// The format's name for a type: "F32".
std::string_view safetensors_name(DType dtype);

}  // namespace megalith
