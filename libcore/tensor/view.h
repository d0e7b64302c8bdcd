#pragma once

#include <cstddef>
#include <type_traits>

#include "libcore/base/error.h"
#include "libcore/tensor/dtype.h"
#include "libcore/tensor/shape.h"

namespace megalith {

/// A dense row-major tensor in memory that somebody else owns. An empty view (no data) stands for an absent
/// tensor; an op skips an absent output.
template <class Void>
struct BasicView {
  Void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  explicit operator bool() const { return data != nullptr; }
  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(shape.elements()) * size_of(dtype); }

  /// The same bytes in another shape with equally many elements; kInternal otherwise.
  BasicView as_shape(Shape other) const {
    if (other.elements() != shape.elements())
      fail(ErrorKind::kInternal, "cannot view ", shape, " as ", other);
    return {data, dtype, other};
  }
  /// Entries [begin, end) of the outermost axis.
  BasicView rows(int64_t begin, int64_t end) const {
    if (begin < 0 || end < begin || end > shape[0])
      fail(ErrorKind::kInternal, "rows ", begin, " to ", end, " of ", shape);
    Shape part = shape;
    part[0] = end - begin;
    const int64_t row = shape[0] == 0 ? 0 : shape.elements() / shape[0];
    using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
    return {static_cast<Byte*>(data) + static_cast<size_t>(begin * row) * size_of(dtype), dtype, part};
  }
  template <class T>
  auto* as() const {
    using Element = std::conditional_t<std::is_const_v<Void>, const T, T>;
    return static_cast<Element*>(data);
  }
  // NOLINTNEXTLINE(google-explicit-constructor): a view may be read wherever it may be written
  operator BasicView<const void>() const requires(!std::is_const_v<Void>) { return {data, dtype, shape}; }
};
using View = BasicView<void>;
using ConstView = BasicView<const void>;

}  // namespace megalith
