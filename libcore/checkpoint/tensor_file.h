#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/checkpoint/slice.h"
#include "libcore/tensor/view.h"

namespace megalith {

/// What a container says about one tensor.
struct StoredTensor {
  std::string name;
  std::string dtype_name;        // the container's name for its type: "F32", "BOOL"
  std::optional<DType> dtype;    // empty if no code here can compute in that type
  std::vector<int64_t> extents;  // outermost axis first; empty for a scalar

  /// The extents as a Shape; a scalar is [1]. kData if there are more axes than a Shape holds.
  Shape shape() const;
};

/// A container of named tensors: a .safetensors file, a Hugging Face folder of them, a checkpoint folder.
/// Blocks are read by calls, not from mapped memory, for three reasons. Page faults and the release of pages
/// cost more than the copy. A strided read of a mapped tensor touched its pages again for each strip. And if
/// a file is truncated while it is read, a call reports an error, whereas mapped memory raises a signal.
class TensorFile {
 public:
  virtual ~TensorFile() = default;

  virtual const std::string& path() const = 0;
  /// All tensors, sorted by name.
  virtual const std::vector<StoredTensor>& tensors() const = 0;
  /// Fills `out` (host memory) with the block that begins at box.offset and has the shape of `out`,
  /// converting between floating-point types. Throws kData, naming the file and the tensor, if there is no
  /// such tensor, if its shape is not box.global, if its type does not convert, or if its bytes are damaged.
  /// Several threads may read at once.
  virtual void read(const Box& box, View out) const = 0;
  /// The whole tensor box.name, of shape box.global, in mapped memory. It is valid as long as this object
  /// lives. Empty if no mapped file holds the tensor in exactly this form.
  virtual ConstView mapped(const Box&) const { return {}; }
  /// A text that determines everything that the container holds, and holds a checksum of each byte; nothing
  /// if the container has no checksums.
  virtual std::optional<std::string> checksums() const { return std::nullopt; }

  /// nullptr if there is no tensor of this name.
  const StoredTensor* find(std::string_view name) const;
  /// The tensor of this name. If there is none, throws kData, naming the most similar name.
  const StoredTensor& at(std::string_view name) const;

 protected:
  /// As at(). Also checks that the tensor has the shape box.global, that the block is within it, and that its
  /// type converts to the type of `out`.
  const StoredTensor& checked(const Box& box, ConstView out) const;
};

}  // namespace megalith
