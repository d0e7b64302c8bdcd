#include "libcore/checkpoint/views/rows.h"

#include <algorithm>
#include <cstring>

#include "libcore/base/error.h"

namespace megalith {
namespace {

// The number of axes that count as rows.
int row_axes(const MatrixForm& form) {
  return form.vector ? form.shape.rank : form.shape.rank - 1;
}

// The number of rows in one step along `axis`.
int64_t rows_within(const MatrixForm& form, int axis) {
  int64_t rows = 1;
  for (int inner = axis + 1; inner < row_axes(form); ++inner) rows *= form.shape[inner];
  return rows;
}

// A part of a tensor. For some axis, it has extent 1 on all axes before it and the whole extent on all axes
// after it.
struct Part {
  Part step(int axis, int64_t at, int64_t steps = 1) const {
    Part out = *this;
    out.offset[axis] = at;
    out.extent[axis] = steps;
    return out;
  }
  Shape offset, extent;
};

// Cuts rows of a tensor into boxes and passes them to `take` in order.
struct RowCutter {
  // Cuts rows [begin, end) of `all` in three: the rows up to the next whole step along `axis`, the whole
  // steps, and the remaining rows. Rows are counted within the axes from `axis` on.
  void cut(const Part& all, int axis, int64_t begin, int64_t end) const {
    if (begin >= end) return;
    if (axis == row_axes(form)) return take(all.offset, all.extent);  // a tensor with only one row
    const int64_t step = rows_within(form, axis);
    const int64_t first_whole = (begin + step - 1) / step, last_whole = end / step;
    const auto within = [&](int64_t at, int64_t from, int64_t to) {
      cut(all.step(axis, at), axis + 1, from - at * step, to - at * step);
    };
    if (first_whole > last_whole) return within(last_whole, begin, end);
    within(first_whole - 1, begin, first_whole * step);
    if (first_whole < last_whole) {
      const Part whole = all.step(axis, first_whole, last_whole - first_whole);
      take(whole.offset, whole.extent);
    }
    within(last_whole, last_whole * step, end);
  }

  const MatrixForm& form;
  const std::function<void(const Shape& offset, const Shape& extent)>& take;
};

constexpr int64_t kTransposedBytes = int64_t{1} << 18;

// A matrix whose rows are `pitch` elements apart.
template <class Word>
struct Words {
  Word* first;
  int64_t pitch;
};

template <class Word>
void transpose_block(Words<const Word> in, Words<Word> out, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) out.first[c * out.pitch + r] = in.first[r * in.pitch + c];
}

constexpr int64_t kSquare = 8;
typedef uint16_t Row8 __attribute__((vector_size(kSquare * sizeof(uint16_t))));

// Interleaves rows: rows i and i + 4 of `in` become rows 2 i and 2 i + 1 of `out`.
void interleave(const Row8 (&in)[kSquare], Row8 (&out)[kSquare]) {
  for (int64_t i = 0; i < 4; ++i) {
    out[2 * i] = __builtin_shufflevector(in[i], in[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
    out[2 * i + 1] = __builtin_shufflevector(in[i], in[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
  }
}

// Transposes 8 x 8 two-byte words, in three steps of interleaving.
void transpose_square(Words<const uint16_t> in, Words<uint16_t> out) {
  Row8 a[kSquare], b[kSquare];
  for (int i = 0; i < kSquare; ++i) std::memcpy(&a[i], in.first + i * in.pitch, sizeof(Row8));
  interleave(a, b);
  interleave(b, a);
  interleave(a, b);
  for (int i = 0; i < kSquare; ++i) std::memcpy(out.first + i * out.pitch, &b[i], sizeof(Row8));
}
template <class Word>
void transpose_square(Words<const Word> in, Words<Word> out) {
  transpose_block(in, out, kSquare, kSquare);
}

template <class Word>
void transpose_words(ConstView from, View to, int64_t at, int64_t first) {
  constexpr int64_t kTile = 64;  // a tile consists of whole cache lines, both in the source and in the target
  const int64_t rows = from.shape.rows(), columns = to.shape[0], pitch = to.shape.back();
  const auto in = [&](int64_t r, int64_t c) {
    const int64_t from_pitch = from.shape.back();
    return Words<const Word>{static_cast<const Word*>(from.data) + r * from_pitch + first + c, from_pitch};
  };
  const auto out = [&](int64_t r, int64_t c) {
    return Words<Word>{static_cast<Word*>(to.data) + c * pitch + at + r, pitch};
  };
  for (int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (int64_t c = 0; c < columns; c += kSquare)
      for (int64_t r = r0; r < std::min(r0 + kTile, rows); r += kSquare)
        if (r + kSquare <= rows && c + kSquare <= columns)
          transpose_square(in(r, c), out(r, c));
        else
          transpose_block(in(r, c), out(r, c), std::min(kSquare, rows - r), std::min(kSquare, columns - c));
}

}  // namespace

void read_matrix(const TensorFile& file, const std::string& name, const MatrixForm& form, MatrixBlock block,
                 View out) {
  if (out.elements() != block.rows * block.columns)
    fail(ErrorKind::kInternal, "a view of ", out.shape, " for ", block.rows, " rows of ", block.columns);
  Shape offset = Box::whole({}, form.shape).offset, extent = form.shape;
  if (!form.vector) {
    offset[form.shape.rank - 1] = block.column;
    extent[form.shape.rank - 1] = block.columns;
  }
  auto* to = out.as<std::byte>();
  const std::function<void(const Shape&, const Shape&)> take = [&](const Shape& o, const Shape& e) {
    const View view{to, out.dtype, e};
    file.read({name, form.shape, o}, view);
    to += view.bytes();
  };
  RowCutter{.form = form, .take = take}.cut({offset, extent}, 0, block.row, block.row + block.rows);
}

void for_each_row_run(const MatrixForm& form, const Shape& offset, const Shape& extent,
                      const std::function<void(int64_t, int64_t, int64_t)>& take) {
  int last = row_axes(form) - 1;  // the axis along which a run extends
  if (last < 0) return take(0, 1, 0);
  while (last > 0 && extent[last] == form.shape[last]) --last;
  const int64_t step = rows_within(form, last), rows = extent[last] * step;
  int64_t runs = 1;
  for (int axis = 0; axis < last; ++axis) runs *= extent[axis];
  for (int64_t run = 0; run < runs; ++run) {
    int64_t row = offset[last] * step, rest = run;
    for (int axis = last - 1; axis >= 0; --axis) {
      row += (offset[axis] + rest % extent[axis]) * rows_within(form, axis);
      rest /= extent[axis];
    }
    take(row, rows, run * rows);
  }
}

void transpose(ConstView in, View out) {
  transpose_rows(in, out.as_shape({in.shape.back(), in.shape.rows()}), 0);
}

void transpose_rows(ConstView in, View out, int64_t at, int64_t first) {
  if (in.dtype != out.dtype || out.shape.rank != 2 || first < 0 || first + out.shape[0] > in.shape.back() ||
      at < 0 || at + in.shape.rows() > out.shape[1])
    fail(ErrorKind::kInternal, "cannot transpose ", in.shape, " to ", out.shape, " at ", at);
  switch (size_of(in.dtype)) {
    case 1:
      return transpose_words<uint8_t>(in, out, at, first);
    case 2:
      return transpose_words<uint16_t>(in, out, at, first);
    case 4:
      return transpose_words<uint32_t>(in, out, at, first);
    default:
      return transpose_words<uint64_t>(in, out, at, first);
  }
}

int64_t transposed_at_once(int64_t row_bytes) {
  return std::max(kSquare, kTransposedBytes / std::max<int64_t>(row_bytes, 1) / kSquare * kSquare);
}

}  // namespace megalith
