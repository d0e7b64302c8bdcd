#include "libcore/checkpoint/views/joined_file.h"

#include <algorithm>
#include <cstring>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/elements.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/views/rows.h"

namespace megalith {
namespace {

constexpr int64_t kComparedElements = int64_t{1} << 20;

// The memory to which a block of our matrix is written.
struct Target {
  View out;             // [rows, columns]
  int64_t row, column;  // the place of the first element of `out` in our matrix
};

// The place or extent {plane, row, column} in the tensor that a part comes from. Axes that this tensor lacks
// are left out.
Shape on_axes(const JoinedPart& part, int64_t plane, int64_t row, int64_t column) {
  Shape out;
  out.rank = static_cast<int>(std::max<size_t>(part.from.extents.size(), 1));
  int axis = 0;
  if (part.plane >= 0) out[axis++] = plane;
  out[axis++] = row;
  if (axis < out.rank) out[axis] = column;
  return out;
}

// The number of rows of the part, from our row `row` on and before row `end`, that are contiguous in the
// stored tensor, too.
int64_t run_length(const JoinedPart& part, int64_t row, int64_t end) {
  if (part.order.head == 0) return end - row;
  const int64_t first = part.order.theirs(row - part.ours.row);
  int64_t n = 1;
  while (row + n < end && part.order.theirs(row + n - part.ours.row) == first + n) ++n;
  return n;
}

void copy_part(const JoinedPart& part, const Target& target) {
  const auto& [out, at_row, at_column] = target;
  const MatrixBlock wanted = common(part.ours, {at_row, out.shape[0], at_column, out.shape[1]});
  if (wanted.rows == 0 || wanted.columns == 0) return;
  const View to{out.data, out.dtype, on_axes(part, 1, out.shape[0], out.shape[1])};
  for (int64_t row = wanted.row, n = 0; row < wanted.end(); row += n) {
    n = run_length(part, row, wanted.end());
    copy_tensor(part.from,
                on_axes(part, part.plane, part.from_row + part.order.theirs(row - part.ours.row),
                        part.from_column + wanted.column - part.ours.column),
                to, on_axes(part, 0, row - at_row, wanted.column - at_column),
                on_axes(part, 1, n, wanted.columns));
  }
}

void add_one(View out) {
  std::vector<float> values(static_cast<size_t>(out.elements()));
  convert_elements(values.data(), DType::kF32, out.data, out.dtype, out.elements());
  for (float& value : values) value += 1;
  convert_elements(out.data, out.dtype, values.data(), DType::kF32, out.elements());
}

std::string place(const JoinedPart& part) {
  return part.from.bytes->file.path();
}

// Whether the tensor that a part comes from has the axes of our tensor, and the part is within it.
bool is_within(const JoinedPart& part, bool vector) {
  const size_t axes = (part.plane < 0 ? 0 : 1) + (vector ? 1 : 2);
  if (part.from.extents.size() != axes) return false;
  const Shape first = on_axes(part, part.plane, part.from_row, part.from_column),
              extent = on_axes(part, 1, part.ours.rows, part.ours.columns);
  return fits(part.from.shape(), first, extent);
}

}  // namespace

int64_t RowOrder::theirs(int64_t row) const {
  if (head == 0) return row;
  const int64_t unit = row / head, in_group = unit % group_heads;
  int64_t j = row % head;
  if (interleaved && in_group < group_heads - 1) j = j < head / 2 ? 2 * j : 2 * (j - head / 2) + 1;
  switch (qkv) {
    case QkvOrder::kByGroup:
      break;
    case QkvOrder::kByKind:
      return ((unit % 3) * heads + unit / 3) * head + j;
    case QkvOrder::kByElement:
      return (unit / 3 * head + j) * 3 + unit % 3;
  }
  return unit * head + j;
}

JoinedTensorFile::JoinedTensorFile(std::string path, std::vector<JoinedTensor> tensors)
    : path_(std::move(path)), joined_(std::move(tensors)), compared_(joined_.size()) {
  std::sort(joined_.begin(), joined_.end(),
            [](const JoinedTensor& a, const JoinedTensor& b) { return a.name < b.name; });
  for (JoinedTensor& tensor : joined_) stored_.push_back(checked_stored(tensor));
}

StoredTensor JoinedTensorFile::checked_stored(JoinedTensor& tensor) const {
  IndexedTensor cover{
      .name = tensor.name, .dtype = {}, .shape = {tensor.rows(), tensor.columns}, .blocks = {}};
  const JoinedPart& first = tensor.parts.front();
  for (JoinedPart& part : tensor.parts) {
    MatrixBlock& ours = part.ours;
    if (tensor.padded) ours.rows = std::min(ours.rows, tensor.rows() - ours.row);
    if (ours.rows > 0)
      cover.blocks.push_back(
          {.offset = {ours.row, ours.column}, .extent = {ours.rows, ours.columns}, .file = {}});
    if (part.from.type != first.from.type)
      fail(ErrorKind::kData, place(part), ": tensor ", quote(tensor.name), " is ", part.from.type->name,
           ", in ", place(first), " ", first.from.type->name);
    if (ours.rows > 0 && !is_within(part, tensor.vector))
      fail(ErrorKind::kData, place(part), ": tensor ", quote(tensor.name), " is ", part.from.shape(),
           ", wanted ", ours.rows, " rows of ", ours.columns, " from row ", part.from_row, " on");
  }
  check_cover(cover, ErrorKind::kData, concat(path_, ": tensor ", quote(tensor.name)));
  if (!first.from.type->dtype)
    fail(ErrorKind::kData, place(first), ": tensor ", quote(tensor.name), " is ", first.from.type->name,
         ", which is not a type of parameters");
  StoredTensor stored{.name = tensor.name,
                      .dtype_name = std::string(first.from.type->name),
                      .dtype = first.from.type->dtype,
                      .extents = {}};
  stored.extents.assign(tensor.shape.dim.begin(), tensor.shape.dim.begin() + tensor.shape.rank);
  return stored;
}

void JoinedTensorFile::compare_copies(size_t at) const {
  const JoinedTensor& tensor = joined_[at];
  if (tensor.copies.empty()) return;
  const std::scoped_lock lock(comparing_);
  if (compared_[at]) return;
  const DType dtype = *stored_[at].dtype;
  const int64_t step = std::max<int64_t>(1, kComparedElements / std::max<int64_t>(tensor.columns, 1));
  std::vector<std::byte> ours, theirs;
  for (const JoinedPart& copy : tensor.copies) {
    const int64_t end = std::min(copy.ours.end(), tensor.rows());
    for (int64_t row = copy.ours.row; row < end; row += step) {
      const Shape shape{std::min(step, end - row), tensor.columns};
      ours.resize(static_cast<size_t>(shape.elements()) * size_of(dtype));
      theirs.resize(ours.size());
      for (const JoinedPart& part : tensor.parts) copy_part(part, {{ours.data(), dtype, shape}, row, 0});
      copy_part(copy, {{theirs.data(), dtype, shape}, row, 0});
      if (ours != theirs)
        fail(ErrorKind::kData, place(copy), ": its copy of tensor ", quote(tensor.name),
             " differs from that in ", place(tensor.parts.front()),
             "; the checkpoint is damaged or was mixed from two");
    }
  }
  compared_[at] = true;
}

void JoinedTensorFile::read(const Box& box, View out) const {
  const auto at = static_cast<size_t>(&checked(box, out) - stored_.data());
  const JoinedTensor& tensor = joined_[at];
  compare_copies(at);
  if (out.elements() == 0) return;
  const bool vector = tensor.vector;
  const int64_t columns = vector ? 1 : out.shape.back(),
                column = vector ? 0 : box.offset[box.offset.rank - 1];
  const View matrix = out.as_shape({out.elements() / columns, columns});
  for_each_row_run({tensor.shape, vector}, box.offset, out.shape,
                   [&](int64_t row, int64_t rows, int64_t done) {
                     for (const JoinedPart& part : tensor.parts)
                       copy_part(part, {matrix.rows(done, done + rows), row, column});
                   });
  if (tensor.add_one) add_one(out);
}

}  // namespace megalith
