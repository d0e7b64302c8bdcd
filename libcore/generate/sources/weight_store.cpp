#include "libcore/generate/sources/weight_store.h"

#include <algorithm>

#include "libcore/checkpoint/native/params_io.h"
#include "libcore/model/ctx.h"
#include "libcore/model/embedding.h"
#include "libcore/model/param_store.h"

namespace megalith {
namespace {

bool is_matrix(const Param& param) {
  return param.global.rank >= 2 && param.name.ends_with(".weight");
}

/// The type in which a parameter is kept in memory.
DType kept_type(const TensorFile& file, const Param& param) {
  const DType stored = file.at(share_of(param).box.name).dtype.value_or(DType::kF32);
  return is_matrix(param) && (stored == DType::kBf16 || stored == DType::kF16) ? stored : DType::kF32;
}

/// This rank's part of a mapped tensor; empty if it is not one piece of it.
ConstView part_of(const ConstView& whole, const Param& param, const ParamShare& share) {
  if (!whole || share.extent == param.global) return whole;
  if (param.shard_axis != 0 || share.extent != param.local) return {};
  return whole.rows(share.box.offset[0], share.box.offset[0] + share.extent[0]);
}

/// Reads this rank's part. Rows of the vocabulary that no id has become zero.
void read_part(const TensorFile& file, const ParamShare& share, View to, Stream& stream) {
  file.read(share.box, to.rows(0, share.extent[0]));
  if (share.extent[0] < to.shape[0]) stream.fill(to.rows(share.extent[0], to.shape[0]), 0);
}

}  // namespace

WeightStore::WeightStore(const TensorFile& file, ParamTable& table, Stream& stream,
                         const WeightOptions& options) {
  for (Param& param : table.all()) {
    const Param* const other = param.tie.empty() ? nullptr : table.find(param.tie);
    // A token reads one row of an embedding, so the size of the table costs no time.
    const bool looked_up = param.name.starts_with("embedding.");
    const bool narrow = options.int8 && is_matrix(param) && !looked_up;
    const Stored value = other != nullptr ? Stored{other->value} : stored(file, param, stream, narrow);
    if (narrow)
      quantize(param, value.view, stream);
    else
      param.value = value.view;
  }
  arenas_.push_back(place_constants(table, stream));
}

/// Allocates a tensor. Several tensors share a block of many huge pages.
View WeightStore::make(Stream& stream, DType dtype, const Shape& shape, const std::string& name) {
  constexpr size_t kBlock = size_t{64} << 20, kAlignment = 256;
  const size_t bytes = static_cast<size_t>(shape.elements()) * size_of(dtype);
  if (arenas_.empty() || arenas_.back().mark() + bytes + 2 * kAlignment > arenas_.back().capacity())
    arenas_.push_back(make_arena(stream.backend(), "weights", std::max(kBlock, bytes + 2 * kAlignment)));
  bytes_ += static_cast<int64_t>(bytes);
  return arenas_.back().make(dtype, shape, name);
}

/// The tensor in place in the file, or a copy in this store's memory. With `passing`, the copy is needed only
/// until it is converted to 8 bits; it has separate memory, which is then freed.
WeightStore::Stored WeightStore::stored(const TensorFile& file, const Param& param, Stream& stream,
                                        bool passing) {
  const ParamShare share = share_of(param);
  const DType dtype = kept_type(file, param);
  const ConstView whole = file.mapped(Box::whole(share.box.name, param.global));
  if (const ConstView there = part_of(whole, param, share); there && there.dtype == dtype) {
    if (!passing) {
      bytes_ += static_cast<int64_t>(there.bytes());
      mapped_ += static_cast<int64_t>(there.bytes());
    }
    // Inference only reads.
    return {{const_cast<void*>(there.data), there.dtype, there.shape}};
  }
  Stored copy;
  if (passing) {
    const size_t bytes = static_cast<size_t>(param.local.elements()) * size_of(dtype);
    copy.own.emplace(make_arena(stream.backend(), param.name, bytes + 256));
    copy.view = copy.own->make(dtype, param.local, param.name);
  } else {
    copy.view = make(stream, dtype, param.local, param.name);
  }
  read_part(file, share, copy.view, stream);
  return copy;
}

void WeightStore::quantize(Param& param, View wide, Stream& stream) {
  const Shape matrix{wide.shape.rows(), wide.shape.back()};
  const View narrow = make(stream, DType::kI8, matrix, param.name);
  param.scales = make(stream, DType::kF32, {matrix[0]}, param.name);
  run(stream, QuantizeRows{.q = narrow, .scales = param.scales, .w = wide.as_shape(matrix)});
  param.value = narrow.as_shape(wide.shape);
}

}  // namespace megalith
