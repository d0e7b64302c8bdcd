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
  std::string dtype_name;        // the container's name for it: "F32", "BOOL"
  std::optional<DType> dtype;    // empty: a type in which nothing here computes
  std::vector<int64_t> extents;  // outermost axis first; empty: a scalar

  /// The extents as a Shape; a scalar is [1]. kData if there are more axes than a Shape holds.
  Shape shape() const;
};

/// A container of named tensors: a .safetensors file, a Hugging Face folder of them, a checkpoint folder.
/// Blocks are read by calls, not from mapped memory, for three reasons: page faults and releasing pages cost
/// more than the copy; a strided read of a mapped tensor touched its pages again for each strip; and a file
/// that is truncated while it is read causes an error instead of a signal.
class TensorFile {
 public:
  virtual ~TensorFile() = default;

  virtual const std::string& path() const = 0;
  /// All tensors, sorted by name.
  virtual const std::vector<StoredTensor>& tensors() const = 0;
  /// Fills `out` (host memory) with the block of its shape at box.offset, converting between floating-point
  /// types. kData, with the file and the tensor: no such tensor, another shape than box.global, a type that
  /// does not convert, damaged bytes. Several threads may read at once.
  virtual void read(const Box& box, View out) const = 0;
  /// Tensor box.name as a whole, with the shape box.global, in mapped memory; valid as long as this object.
  /// Empty if no mapped file holds the tensor in exactly this form.
  virtual ConstView mapped(const Box&) const { return {}; }

  /// nullptr if there is no tensor of this name.
  const StoredTensor* find(std::string_view name) const;
  /// kData, with the most similar name, if there is no tensor of this name.
  const StoredTensor& at(std::string_view name) const;

 protected:
  /// at(), plus checks that the tensor has the shape box.global, that the block is within it and that its
  /// type converts to that of `out`.
  const StoredTensor& checked(const Box& box, ConstView out) const;
};

}  // namespace megalith
