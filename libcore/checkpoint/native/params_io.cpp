#include "libcore/checkpoint/native/params_io.h"

#include <algorithm>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"

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

void load_param(const TensorFile& file, Param& param, Stream& stream, ParamSource source) {
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
