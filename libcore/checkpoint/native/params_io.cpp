#include "libcore/checkpoint/native/params_io.h"

#include <algorithm>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {

ParamShare share_of(const Param& param) {
  ParamShare share{.box = Box::whole(param.tie.empty() ? param.name : param.tie, param.global),
                   .extent = param.global};
  if (param.shard_axis == kWhole) return share;
  const int axis = param.shard_axis;
  share.box.offset[axis] = std::min(param.offset, param.global[axis]);
  share.extent[axis] = std::min(param.local[axis], param.global[axis] - share.box.offset[axis]);
  return share;
}

namespace {

Box source_of(const TensorFile& file, const Box& value, ParamSource source) {
  Box master = value;
  master.name = concat(kOptimizerPrefix, "master.", value.name);
  return source == ParamSource::kMasters && file.find(master.name) ? master : value;
}

/// Loads a matrix as 8-bit integers with a scale per row. Whole rows are read even if this rank holds only
/// some of the columns, so that the scales do not depend on the layout.
void load_int8(const TensorFile& file, Param& param, Stream& stream) {
  constexpr int64_t kPiece = int64_t{1} << 22;  // elements read at a time
  const ParamShare share = share_of(param);
  const int last = param.global.rank - 1;
  Shape extent = share.extent, from = share.box.offset;
  extent[last] = param.global[last];
  from[last] = 0;
  const int64_t columns = extent[last], own = param.local[last], first = share.box.offset[last];
  std::vector<float> whole(static_cast<size_t>(extent.elements()));
  Box box = share.box;
  box.offset = from;
  file.read(box, View{whole.data(), DType::kF32, extent});
  const int64_t rows = extent.rows(), step = std::max<int64_t>(1, kPiece / columns);
  std::vector<int8_t> narrow(static_cast<size_t>(std::min(rows, step) * columns)), part;
  for (int64_t row = 0; row < rows; row += step) {
    const int64_t count = std::min(step, rows - row);
    const Shape piece{count, columns};
    run(stream, QuantizeRows{.q = View{narrow.data(), DType::kI8, piece},
                             .scales = param.scales.rows(row, row + count),
                             .w = ConstView{whole.data() + row * columns, DType::kF32, piece}});
    stream.synchronize();
    part.resize(static_cast<size_t>(count * own));
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(narrow.begin() + i * columns + first, own, part.begin() + i * own);
    stream.from_host(param.value.as_shape({rows, own}).rows(row, row + count), part.data());
  }
}

/// Throws kInternal if a parameter is padded on an axis other than its rows: only the vocabulary is ever
/// padded.
void require_padded_rows(const Param& param, const ParamShare& share) {
  if (share.extent != param.local && param.shard_axis != 0)
    fail(ErrorKind::kInternal, "parameter ", quote(param.name), " is padded on axis ", param.shard_axis);
}

void load_param(const TensorFile& file, Param& param, Stream& stream, ParamSource source) {
  if (param.int8) return load_int8(file, param, stream);
  const ParamShare share = share_of(param);
  require_padded_rows(param, share);
  const View rows = param.value.as_shape(param.local);
  load_box(file, source_of(file, share.box, source), rows.rows(0, share.extent[0]), stream);
  if (share.extent[0] < param.local[0]) stream.fill(rows.rows(share.extent[0], param.local[0]), 0);
}

}  // namespace

void load_box(const TensorFile& file, const Box& box, View to, Stream& stream) {
  // The number of bytes read at a time: few enough to be still in the cache when they are copied.
  constexpr int64_t kPiece = int64_t{4} << 20;
  const int64_t rows = to.shape[0];
  if (to.elements() == 0) return;
  const auto row_bytes = static_cast<int64_t>(to.bytes()) / rows;
  const int64_t step = std::clamp<int64_t>(kPiece / row_bytes, 1, rows);
  std::vector<std::byte> host(static_cast<size_t>(step * row_bytes));
  for (int64_t row = 0; row < rows; row += step) {
    Box piece = box;
    piece.offset[0] += row;
    const View part = to.rows(row, std::min(rows, row + step));
    file.read(piece, View{host.data(), to.dtype, part.shape});
    stream.from_host(part, host.data());
  }
}

void load_params(const TensorFile& file, ParamTable& params, Stream& stream, ParamSource source,
                 ParamChoice choice) {
  const auto chosen = [&](const Param& param) {
    return choice == ParamChoice::kAll || param.trainable == (choice == ParamChoice::kTrained);
  };
  for (Param& param : params.all()) {
    stop_if_asked();
    if (param.value && chosen(param)) load_param(file, param, stream, source);
  }
  stream.synchronize();
}

void put_params(CheckpointWriter& writer, const ParamTable& params, const TensorSplit& split) {
  for (const Param& param : params.all()) {
    if (!param.trainable || !param.tie.empty() || (param.shard_axis == kWhole && split.rank != 0)) continue;
    const ParamShare share = share_of(param);
    if (share.extent.elements() == 0) continue;  // this rank holds nothing but padding
    const ConstView value = param.value;
    require_padded_rows(param, share);
    writer.put(share.box, value.as_shape(param.local).rows(0, share.extent[0]));
  }
}

}  // namespace megalith
