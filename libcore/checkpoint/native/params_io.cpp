#include "libcore/checkpoint/native/params_io.h"

#include <algorithm>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/ops/backend.h"

namespace megalith {

ParamShare share_of(const Param& param) {
  ParamShare share{.box = Box::whole(param.tie.empty() ? param.name : param.tie, param.global),
                   .extent = param.global};
  if (param.cut_axis == kWhole) return share;
  const int axis = param.cut_axis;
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

/// A matrix in 8 bits. Whole rows are read, also where the ranks share their columns, so that every layout
/// has the same scales.
void load_int8(const TensorFile& file, Param& param, Stream& stream) {
  constexpr int64_t kPiece = int64_t{1} << 22;  // elements in passing
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

void load_param(const TensorFile& file, Param& param, Stream& stream, ParamSource source) {
  if (param.int8) return load_int8(file, param, stream);
  const ParamShare share = share_of(param);
  const DType dtype = param.value.dtype;
  std::vector<std::byte> part(static_cast<size_t>(share.extent.elements()) * size_of(dtype));
  file.read(source_of(file, share.box, source), View{part.data(), dtype, share.extent});
  if (share.extent == param.local) return stream.from_host(param.value, part.data());
  std::vector<std::byte> padded(param.value.bytes());
  const Shape zero = Box::whole({}, share.extent).offset;
  copy_block(ConstView{part.data(), dtype, share.extent}, zero, View{padded.data(), dtype, param.local}, zero,
             share.extent);
  stream.from_host(param.value, padded.data());
}

}  // namespace

void load_params(const TensorFile& file, ParamTable& params, Stream& stream, ParamSource source,
                 ParamChoice choice) {
  const auto chosen = [&](const Param& param) {
    return choice == ParamChoice::kAll || param.trainable == (choice == ParamChoice::kTrained);
  };
  for (Param& param : params.all())
    if (param.value && chosen(param)) load_param(file, param, stream, source);
  stream.synchronize();
}

void put_params(CheckpointWriter& writer, const ParamTable& params, const TensorSplit& split) {
  for (const Param& param : params.all()) {
    if (!param.trainable || !param.tie.empty() || (param.cut_axis == kWhole && split.rank != 0)) continue;
    const ParamShare share = share_of(param);
    if (share.extent.elements() == 0) continue;  // this rank holds padding only
    const ConstView value = param.value;
    if (share.extent != param.local && param.cut_axis != 0)
      fail(ErrorKind::kInternal, "parameter ", quote(param.name), " is padded on axis ", param.cut_axis);
    writer.put(share.box, value.as_shape(param.local).rows(0, share.extent[0]));
  }
}

}  // namespace megalith
