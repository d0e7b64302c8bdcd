#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>

namespace megalith {

/// Extents of a dense row-major tensor, outermost axis first. `rank` is the number of axes, at most kMaxRank.
/// rank 0 means that there is no tensor: 0 elements.
struct Shape {
  static constexpr int kMaxRank = 5;  // the packed QKV has five: [s, b, groups, q + 2, head]

  std::array<int64_t, kMaxRank> dim{1, 1, 1, 1, 1};
  int rank = 0;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : rank(static_cast<int>(dims.size())) {
    size_t i = 0;
    for (int64_t d : dims) dim[i++] = d;
  }
  int64_t operator[](int axis) const { return dim[static_cast<size_t>(axis)]; }
  int64_t& operator[](int axis) { return dim[static_cast<size_t>(axis)]; }
  int64_t back() const { return rank == 0 ? 0 : dim[static_cast<size_t>(rank - 1)]; }
  int64_t elements() const {
    if (rank == 0) return 0;
    int64_t n = 1;
    for (int64_t d : dim) n *= d;
    return n;
  }
  /// The number of rows, as a row-wise op counts them: all axes but the last.
  int64_t rows() const { return back() == 0 ? 0 : elements() / back(); }
  bool operator==(const Shape&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int i = 0; i < shape.rank; ++i) out << (i ? ", " : "") << shape[i];
  return out << ']';
}

}  // namespace megalith
