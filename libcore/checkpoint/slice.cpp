#include "libcore/checkpoint/slice.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "libcore/checkpoint/elements.h"

namespace megalith {
namespace {

int64_t place_of(const Shape& shape, const Shape& at) {
  int64_t place = 0;
  for (int axis = 0; axis < shape.rank; ++axis) place = place * shape[axis] + at[axis];
  return place;
}

// Moves `at` to the next step in the first `axes` axes of the block; false after the last one.
bool next_step(Shape& at, const Shape& extent, int axes) {
  for (int axis = axes - 1; axis >= 0; --axis) {
    if (++at[axis] < extent[axis]) return true;
    at[axis] = 0;
  }
  return false;
}

Shape sum(const Shape& a, const Shape& b) {
  Shape out = a;
  for (int axis = 0; axis < a.rank; ++axis) out[axis] += b[axis];
  return out;
}

// The copy, with fewer axes: as long as the block covers all of the last axis both in `from` and in `to`,
// that axis is joined to the one before it. This makes rows as long as possible.
struct Joined {
  Shape from, from_at, to, to_at, extent;

  void join() {
    while (join_last()) {
    }
  }
  Shape zero() const { return Box::whole({}, extent).offset; }

 private:
  bool join_last() {
    const int last = extent.rank - 1;
    if (last < 1 || extent[last] != from[last] || extent[last] != to[last]) return false;
    for (Shape* shape : {&from, &to, &extent}) (*shape)[last - 1] *= (*shape)[last];
    for (Shape* at : {&from_at, &to_at}) (*at)[last - 1] *= extent[last] == 0 ? 0 : from[last];
    for (Shape* shape : {&from, &from_at, &to, &to_at, &extent}) {
      (*shape)[last] = 1;
      --shape->rank;
    }
    return true;
  }
};

}  // namespace

Box Box::whole(std::string name, Shape global) {
  Shape zero = global;
  for (int axis = 0; axis < zero.rank; ++axis) zero[axis] = 0;
  return {std::move(name), global, zero};
}

bool fits(const Shape& global, const Shape& offset, const Shape& extent) {
  if (offset.rank != global.rank || extent.rank != global.rank) return false;
  for (int axis = 0; axis < global.rank; ++axis)
    if (offset[axis] < 0 || extent[axis] < 0 || extent[axis] > global[axis] ||
        offset[axis] > global[axis] - extent[axis])
      return false;
  return true;
}

void copy_block(ConstView from, const Shape& from_at, View to, const Shape& to_at, const Shape& extent) {
  if (extent.elements() == 0) return;
  Joined j{from.shape, from_at, to.shape, to_at, extent};
  j.join();
  const auto from_size = static_cast<int64_t>(size_of(from.dtype)),
             to_size = static_cast<int64_t>(size_of(to.dtype));
  Shape at = j.zero();
  do {
    convert_elements(to.as<std::byte>() + place_of(j.to, sum(j.to_at, at)) * to_size, to.dtype,
                     from.as<std::byte>() + place_of(j.from, sum(j.from_at, at)) * from_size, from.dtype,
                     j.extent.back());
  } while (next_step(at, j.extent, at.rank - 1));
}

namespace {

constexpr int64_t kBuffered = int64_t{1} << 18;  // number of bytes that fit in the nearest cache
// Rows with fewer bytes than this are read in groups, with the bytes between them: a call for each row would
// cost more than reading these bytes.
constexpr int64_t kOwnCall = int64_t{1} << 14;
// But rows with at least this many bytes are read one by one if they fill at most half of the pitch: reading
// the bytes between them would then cost as much as the calls.
constexpr int64_t kWorthSkipping = 1024;

// Rows of a file that are `pitch` bytes apart.
struct FileRows {
  const ReadableFile& file;
  uint64_t begin;
  int64_t pitch, rows, elements;
  DType dtype;
};

std::unique_ptr<std::byte[]> buffer_of(int64_t bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
}

void read_row(const FileRows& from, int64_t row, std::byte* to, DType to_type) {
  const uint64_t begin = from.begin + static_cast<uint64_t>(row * from.pitch);
  const auto size = static_cast<int64_t>(size_of(from.dtype)),
             to_size = static_cast<int64_t>(size_of(to_type));
  if (from.dtype == to_type) return from.file.read_at(begin, to, static_cast<size_t>(from.elements * size));
  const int64_t step = std::min(kBuffered / size, from.elements);
  const auto buffer = buffer_of(step * size);
  for (int64_t at = 0; at < from.elements; at += step) {
    const int64_t n = std::min(step, from.elements - at);
    from.file.read_at(begin + static_cast<uint64_t>(at * size), buffer.get(), static_cast<size_t>(n * size));
    convert_elements(to + at * to_size, to_type, buffer.get(), from.dtype, n);
  }
}

// Reads all rows to `to`, where they are `to_pitch` bytes apart. Short rows are read in groups, together with
// the bytes between them, since these cost less than a call.
void read_rows(const FileRows& from, std::byte* to, int64_t to_pitch, DType to_type) {
  const auto bytes = from.elements * static_cast<int64_t>(size_of(from.dtype));
  if (from.rows == 1 || bytes >= kOwnCall || (bytes >= kWorthSkipping && 2 * bytes <= from.pitch)) {
    for (int64_t row = 0; row < from.rows; ++row) read_row(from, row, to + row * to_pitch, to_type);
    return;
  }
  const int64_t step = std::min(from.rows, std::max<int64_t>(1, kBuffered / from.pitch));
  const auto buffer = buffer_of((step - 1) * from.pitch + bytes);
  for (int64_t row = 0; row < from.rows; row += step) {
    const int64_t n = std::min(step, from.rows - row);
    from.file.read_at(from.begin + static_cast<uint64_t>(row * from.pitch), buffer.get(),
                      static_cast<size_t>((n - 1) * from.pitch + bytes));
    for (int64_t i = 0; i < n; ++i)
      convert_elements(to + (row + i) * to_pitch, to_type, buffer.get() + i * from.pitch, from.dtype,
                       from.elements);
  }
}

}  // namespace

void read_block(const FileBlock& from, const Shape& from_at, View to, const Shape& to_at,
                const Shape& extent) {
  if (extent.elements() == 0) return;
  Joined j{from.shape, from_at, to.shape, to_at, extent};
  j.join();
  const int last = j.extent.rank - 1;
  const auto from_size = static_cast<int64_t>(size_of(from.dtype)),
             to_size = static_cast<int64_t>(size_of(to.dtype));
  Shape at = j.zero();
  do {
    const int64_t begin = place_of(j.from, sum(j.from_at, at)) * from_size;
    read_rows({.file = from.file,
               .begin = from.begin + static_cast<uint64_t>(begin),
               .pitch = j.from[last] * from_size,
               .rows = last > 0 ? j.extent[last - 1] : 1,
               .elements = j.extent[last],
               .dtype = from.dtype},
              to.as<std::byte>() + place_of(j.to, sum(j.to_at, at)) * to_size, j.to[last] * to_size,
              to.dtype);
  } while (next_step(at, j.extent, last - 1));
}

MatrixBlock common(const MatrixBlock& a, const MatrixBlock& b) {
  const int64_t row = std::max(a.row, b.row), column = std::max(a.column, b.column);
  const int64_t end = std::min(a.end(), b.end()), last = std::min(a.column + a.columns, b.column + b.columns);
  return {row, std::max<int64_t>(end - row, 0), column, std::max<int64_t>(last - column, 0)};
}

Overlap overlap(const Shape& offset_a, const Shape& extent_a, const Shape& offset_b, const Shape& extent_b) {
  Overlap common{offset_a, extent_a};
  for (int axis = 0; axis < offset_a.rank; ++axis) {
    const int64_t begin = std::max(offset_a[axis], offset_b[axis]);
    const int64_t end = std::min(offset_a[axis] + extent_a[axis], offset_b[axis] + extent_b[axis]);
    common.offset[axis] = begin;
    common.extent[axis] = std::max<int64_t>(end - begin, 0);
  }
  return common;
}

namespace {

/// Adds the blocks that form elements [begin, end) of a part of the tensor. The part spans the axes from
/// `axis` on, at the indices `at` of the axes before `axis`; `begin` and `end` are counted within the part.
void add_blocks(const Shape& shape, int axis, Shape at, int64_t begin, int64_t end,
                std::vector<Overlap>& blocks) {
  int64_t row = 1;
  for (int inner = axis + 1; inner < shape.rank; ++inner) row *= shape[inner];
  const auto add_rows = [&](int64_t first, int64_t last) {
    if (first >= last) return;
    Overlap block{at, shape};
    for (int outer = 0; outer < axis; ++outer) block.extent[outer] = 1;
    block.offset[axis] = first;
    block.extent[axis] = last - first;
    blocks.push_back(block);
  };
  const auto add_part_of_row = [&](int64_t from, int64_t to) {
    at[axis] = from / row;
    add_blocks(shape, axis + 1, at, from - at[axis] * row, to - at[axis] * row, blocks);
    at[axis] = 0;
  };
  const int64_t first = (begin + row - 1) / row, last = end / row;  // the whole rows are [first, last)
  if (first > last) return add_part_of_row(begin, end);             // the range is within one row
  if (begin < first * row) add_part_of_row(begin, first * row);
  add_rows(first, last);
  if (last * row < end) add_part_of_row(last * row, end);
}

}  // namespace

std::vector<Overlap> blocks_of_range(const Shape& shape, int64_t begin, int64_t end) {
  std::vector<Overlap> blocks;
  if (begin < end) add_blocks(shape, 0, Box::whole({}, shape).offset, begin, end, blocks);
  return blocks;
}

}  // namespace megalith
