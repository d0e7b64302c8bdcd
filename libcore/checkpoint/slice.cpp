#include "libcore/checkpoint/slice.h"

#include <algorithm>
#include <utility>

#include "libcore/checkpoint/elements.h"

namespace megalith {
namespace {

int64_t place_of(const Shape& shape, const Shape& at) {
  int64_t place = 0;
  for (int axis = 0; axis < shape.rank; ++axis) place = place * shape[axis] + at[axis];
  return place;
}

// Moves `at` to the block's next row (all axes but the last); false after the last one.
bool next_row(Shape& at, const Shape& extent) {
  for (int axis = extent.rank - 2; axis >= 0; --axis) {
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

// Joins the last axis to the one before while the block covers it whole on both sides, so that rows are as
// long as can be.
struct Joined {
  Shape from, from_at, to, to_at, extent;

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
  while (j.join_last()) {
  }
  const auto from_size = static_cast<int64_t>(size_of(from.dtype)),
             to_size = static_cast<int64_t>(size_of(to.dtype));
  Shape at = j.extent;
  for (int axis = 0; axis < at.rank; ++axis) at[axis] = 0;
  do {
    convert_elements(to.as<std::byte>() + place_of(j.to, sum(j.to_at, at)) * to_size, to.dtype,
                     from.as<std::byte>() + place_of(j.from, sum(j.from_at, at)) * from_size, from.dtype,
                     j.extent.back());
  } while (next_row(at, j.extent));
}

void copy_in_parts(const BlockCopy& copy, const std::function<void()>& done, int64_t greatest) {
  const int64_t elements = copy.extent.elements();
  int axis = 0;  // the outermost that can be divided; the innermost is a row
  while (axis < copy.extent.rank - 1 && copy.extent[axis] == 1) ++axis;
  if (elements <= greatest || axis == copy.extent.rank - 1) {
    copy_block(copy.from, copy.from_at, copy.to, copy.to_at, copy.extent);
    return done();
  }
  const int64_t step = std::max<int64_t>(1, greatest / (elements / copy.extent[axis]));
  for (int64_t at = 0; at < copy.extent[axis]; at += step) {
    BlockCopy part = copy;
    part.from_at[axis] += at;
    part.to_at[axis] += at;
    part.extent[axis] = std::min(step, copy.extent[axis] - at);
    copy_in_parts(part, done, greatest);
  }
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

}  // namespace megalith
