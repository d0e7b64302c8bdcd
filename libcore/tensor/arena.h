#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "libcore/tensor/device.h"

namespace megalith {

/// The only allocator of the training path: a bump allocator over one block. Its tensors are freed in stack
/// order. Its peak in a dry run is the memory that a real run will need. A counting arena has no block and no
/// limit: its views are non-empty but point nowhere, so only DryBackend accepts them.
class Arena {
 public:
  static constexpr size_t kAlignment = 256;
  /// The bytes that a tensor takes in an arena.
  static size_t bytes_of(DType dtype, const Shape& shape) {
    const size_t bytes = static_cast<size_t>(shape.elements()) * size_of(dtype);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  /// Takes ownership of the block. make() throws kInternal if the block is too small; the message has the
  /// label and both sizes.
  Arena(std::string name, Memory block) : name_(std::move(name)), block_(std::move(block)) {}
  static Arena counting(std::string name) { return Arena(std::move(name)); }

  /// An uninitialised tensor, 256-byte aligned. `label` names it in messages.
  View make(DType dtype, Shape shape, std::string_view label);

  size_t mark() const { return top_; }
  void rewind(size_t mark);
  size_t peak() const { return peak_; }
  size_t capacity() const { return block_.bytes; }
  const std::string& name() const { return name_; }

 private:
  explicit Arena(std::string name) : name_(std::move(name)), counting_(true) {}

  std::string name_;
  Memory block_;
  bool counting_ = false;
  size_t top_ = 0, peak_ = 0;
};

}  // namespace megalith
