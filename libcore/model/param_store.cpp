#include "libcore/model/param_store.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "libcore/model/ctx.h"
#include "libcore/ops/random/normal_numbers.h"

namespace megalith {
namespace {

int64_t aligned(int64_t elements, int64_t step) {
  return (elements + step - 1) / step * step;
}

/// The parameter that holds `param`'s values: `param` itself, unless it is tied to another parameter in this
/// table.
Param& holder(ParamTable& table, Param& param) {
  Param* const other = param.tie.empty() ? nullptr : table.find(param.tie);
  return other ? *other : param;
}

View part_of(View flat, int64_t offset, const Shape& shape) {
  return flat.rows(offset, offset + shape.elements()).as_shape(shape);
}

/// One bucket: parameters [first, end) of the list of trained ones.
struct BucketRange {
  size_t first, end;
  bool alone;
};

/// Divides the trained parameters into buckets, listed in the order of a backward pass. Except around
/// StoreOptions::alone, buckets consist of whole units, so that a bucket is complete as soon as its last unit
/// is.
std::vector<BucketRange> bucket_ranges(const std::vector<Param*>& own, const StoreOptions& options) {
  std::vector<BucketRange> ranges;
  size_t end = own.size();
  int64_t elements = 0;
  int64_t full = options.bucket;
  if (options.buckets > 0) {
    int64_t all = 0;
    for (const Param* param : own) all += aligned(param->local.elements(), ParamStore::kAlign);
    full = (all + options.buckets - 1) / options.buckets;
  }
  const auto close = [&](size_t first, bool alone) {
    if (first < end) ranges.push_back({first, end, alone});
    end = first;
    elements = 0;
  };
  for (size_t i = own.size(); i-- > 0;) {
    if (!options.alone.empty() && (own[i]->name == options.alone || own[i]->tie == options.alone)) {
      close(i + 1, false);
      close(i, true);
      continue;
    }
    elements += aligned(own[i]->local.elements(), ParamStore::kAlign);
    if ((i == 0 || own[i - 1]->unit != own[i]->unit) && elements >= full) close(i, false);
  }
  close(0, false);
  return ranges;
}

/// Places the gradients of the buckets alternately in two windows of memory. (The buckets are in the order of
/// a backward pass.) While the gradients in one window are reduced, those of the next bucket are computed in
/// the other. Returns the number of elements of the whole memory.
int64_t share_windows(std::vector<Bucket>& buckets) {
  int64_t window = 0;
  for (const Bucket& bucket : buckets)
    if (!bucket.alone) window = std::max(window, bucket.elements());
  int64_t end = 2 * window;
  int sharing = 0;  // number of buckets placed in the windows so far
  for (Bucket& bucket : buckets) {
    if (bucket.alone) end += bucket.elements();
    bucket.grads = bucket.alone ? end - bucket.elements() : (sharing++ % 2) * window;
  }
  return end;
}

/// FNV-1a.
uint64_t hash(std::string_view text) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return sum;
}

/// Sets parameters to their initial values, in pieces, so that each piece is still in the cache when it is
/// copied.
class Initializer {
 public:
  Initializer(Stream& stream, uint64_t seed)
      : stream_(stream),
        seed_(seed),
        values_(kPiece),
        arena_(make_arena(stream.backend(), "staging", Arena::bytes_of(DType::kF32, {kPiece}))),
        staging_(arena_.make(DType::kF32, {kPiece}, "staged values")) {}

  /// Sets a parameter's local part. Rows beyond the global tensor stay zero, as they were allocated.
  void run(const Param& param) {
    const int axis = param.shard_axis == kWhole ? 0 : param.shard_axis;
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; ++i) outer *= param.global[i];
    for (int i = axis + 1; i < param.global.rank; ++i) inner *= param.global[i];
    const int64_t rows = param.local[axis];
    const int64_t true_rows = std::clamp<int64_t>(param.global[axis] - param.offset, 0, rows);
    const NormalNumbers numbers{
        .seed = seed_, .stream = hash(param.tie.empty() ? param.name : param.tie), .std = param.init.value};
    const View all = param.value.as_shape({param.local.elements()});
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t first = (o * param.global[axis] + param.offset) * inner;
      for (int64_t at = 0; at < true_rows * inner; at += kPiece) {
        const int64_t n = std::min(kPiece, true_rows * inner - at);
        const std::span<float> piece(values_.data(), static_cast<size_t>(n));
        if (param.init.kind == Init::kConstant)
          std::fill(piece.begin(), piece.end(), param.init.value);
        else
          numbers.fill(piece, first + at);
        upload(part_of(all, o * rows * inner + at, {n}));
      }
    }
  }

 private:
  static constexpr int64_t kPiece = int64_t{1} << 18;  // 1 MiB

  /// Fills `to` with the first to.elements() numbers of values_.
  void upload(View to) {
    if (to.dtype == DType::kF32) return stream_.from_host(to, values_.data());
    const View f32 = part_of(staging_, 0, to.shape);
    stream_.from_host(f32, values_.data());
    stream_.copy(to, f32);
  }

  Stream& stream_;
  uint64_t seed_;
  std::vector<float> values_;
  Arena arena_;
  View staging_;
};

}  // namespace

ParamStore::ParamStore(ParamTable& table, Stream& stream, const StoreOptions& options) {
  place(table, options);
  const auto make_flat = [&](const char* name, DType dtype, int64_t elements) {
    Arena& arena =
        arenas_.emplace_back(make_arena(stream.backend(), name, Arena::bytes_of(dtype, {elements})));
    return arena.make(dtype, {elements}, name);  // zero, as new memory is
  };
  values_ = make_flat("values", options.dtype, elements_);
  if (frozen_elements_ > 0) frozen_ = make_flat("frozen values", options.dtype, frozen_elements_);
  if (narrow_elements_ > 0) narrow_ = make_flat("frozen values in 8 bits", DType::kI8, narrow_elements_);
  if (narrow_elements_ > 0) scales_ = make_flat("their scales", DType::kF32, scale_elements_);
  arenas_.push_back(place_constants(table, stream));
  for (const Arena& arena : arenas_) value_bytes_ += arena.peak();
  if (options.grads) {
    grads_ = make_flat("gradients", DType::kF32, grad_elements_);
    grad_bytes_ = arenas_.back().peak();
  }
  give_views(table);
}

void ParamStore::place(ParamTable& table, const StoreOptions& options) {
  std::vector<Param*> own;
  std::map<const Param*, int64_t> places;
  for (Param& param : table.all()) {
    if (&holder(table, param) != &param) continue;
    parameters_ += param.local.elements();
    if (param.int8) {
      places[&param] = narrow_elements_;
      narrow_elements_ += aligned(param.local.elements(), kAlign);
      scale_elements_ += aligned(param.local.rows(), kAlign);
      continue;
    }
    if (!param.trainable) {
      places[&param] = frozen_elements_;
      frozen_elements_ += aligned(param.local.elements(), kAlign);
      continue;
    }
    own.push_back(&param);
    trained_ += param.local.elements();
  }
  const std::vector<BucketRange> ranges = bucket_ranges(own, options);
  for (size_t i = ranges.size(); i-- > 0;) {  // backwards, since memory is in the table's order
    const BucketRange& range = ranges[i];
    Bucket bucket{.begin = elements_, .first_unit = own[range.first]->unit, .alone = range.alone};
    bucket.units = own[range.end - 1]->unit - bucket.first_unit + 1;
    for (size_t k = range.first; k < range.end; ++k) {
      places[own[k]] = elements_;
      elements_ += aligned(own[k]->local.elements(), kAlign);
    }
    bucket.end = elements_ = bucket.begin + aligned(elements_ - bucket.begin, kAlign * options.shards);
    bucket.grads = bucket.begin;
    buckets_.insert(buckets_.begin(), bucket);
  }
  for (Param& param : table.all()) offsets_.push_back(places[&holder(table, param)]);
  grad_elements_ = options.windows ? share_windows(buckets_) : elements_;
}

void ParamStore::give_views(ParamTable& table) {
  size_t i = 0;
  int64_t scales = 0;
  for (Param& param : table.all()) {
    const int64_t at = offsets_[i++];
    const Param& from = holder(table, param);
    if (&from != &param) {  // `from` was declared earlier and has its views: the embedding precedes the head
      param.value = from.value;
      param.grad = from.grad;
      continue;
    }
    param.value = part_of(param.int8 ? narrow_ : param.trainable ? values_ : frozen_, at, param.local);
    if (param.int8) {
      param.scales = scales_.rows(scales, scales + param.local.rows());
      scales += aligned(param.local.rows(), kAlign);
    }
    if (!grads_ || !param.trainable) continue;
    const auto bucket = std::find_if(buckets_.begin(), buckets_.end(),
                                     [&](const Bucket& b) { return b.begin <= at && at < b.end; });
    param.grad = part_of(grads_, bucket->grads + at - bucket->begin, param.local);
  }
}

Arena place_constants(ParamTable& table, Stream& stream) {
  size_t bytes = 0;
  for (const Constant& constant : table.constants()) bytes += Arena::bytes_of(DType::kF32, constant.shape);
  Arena constants = make_arena(stream.backend(), "constants", bytes);
  for (Constant& constant : table.constants()) {
    constant.view = constants.make(DType::kF32, constant.shape, constant.name);
    if (constants.capacity() == 0) continue;  // a counting arena has no memory for the values
    stream.from_host(constant.view, constant.make().data());
  }
  return constants;
}

int64_t ParamStore::offset(const Param& param) const {
  const auto bytes =
      reinterpret_cast<uintptr_t>(param.value.data) - reinterpret_cast<uintptr_t>(values_.data);
  return static_cast<int64_t>(bytes / size_of(values_.dtype));
}

void initialize(ParamTable& table, Stream& stream, uint64_t seed, bool trained_only) {
  Initializer initializer(stream, seed);
  for (Param& param : table.all())
    if (&holder(table, param) == &param && (param.trainable || !trained_only)) initializer.run(param);
  stream.synchronize();
}

}  // namespace megalith
