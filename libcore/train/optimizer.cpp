#include "libcore/train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/model/ctx.h"
#include "libcore/ops/backend.h"

namespace megalith {
namespace {

constexpr size_t kArenaAlign = 256;

size_t flat_bytes(int64_t elements) {
  const size_t bytes = static_cast<size_t>(elements) * size_of(DType::kF32);
  return (bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
}

bool own_masters(DType values) {
  return values != DType::kF32;
}

}  // namespace

size_t Optimizer::state_bytes(int64_t elements, DType values) {
  return flat_bytes(elements) * (own_masters(values) ? 3 : 2);
}

Optimizer::Optimizer(const ParamTable& table, const ParamStore& store, Stream& stream,
                     const AdamSettings& settings)
    : store_(store),
      settings_(settings),
      ranges_(make_ranges(table, store)),
      arena_(make_arena(stream.backend(), "optimizer", state_bytes(store.elements(), store.values().dtype))) {
  const Shape flat{store.elements()};
  m_ = arena_.make(DType::kF32, flat, "first moments");
  v_ = arena_.make(DType::kF32, flat, "second moments");
  stream.fill(m_, 0);
  stream.fill(v_, 0);
  masters_ = own_masters(store.values().dtype) ? arena_.make(DType::kF32, flat, "masters") : store.values();
  take_values(stream);
}

// Neighbours of one kind become one range: the alignment gaps between them are zero in values and gradients
// and stay zero.
std::vector<Optimizer::Range> Optimizer::make_ranges(const ParamTable& table, const ParamStore& store) {
  struct Placed {
    int64_t begin, end;
    const Param* param;
  };
  std::vector<Placed> placed;
  for (const Param& param : table.all())
    placed.push_back({store.offset(param), store.offset(param) + param.value.elements(), &param});
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  std::vector<Range> ranges;
  bool joined = false;  // the last range may grow
  int64_t done = 0;     // a tied parameter that lies where another does is updated once
  for (const Placed& p : placed) {
    if (p.begin < done) continue;
    done = p.end;
    if (!p.param->trainable) {
      joined = false;
    } else if (joined && ranges.back().decay == p.param->decay) {
      ranges.back().end = p.end;
    } else {
      ranges.push_back({p.begin, p.end, p.param->decay});
      joined = true;
    }
  }
  return ranges;
}

View Optimizer::part(View flat, const Param& param) const {
  const int64_t begin = store_.offset(param);
  return flat.rows(begin, begin + param.value.elements()).as_shape(param.value.shape);
}

void Optimizer::take_values(Stream& stream) {
  if (masters_.data != store_.values().data) stream.copy(masters_, store_.values());
}

void Optimizer::give_values(Stream& stream) {
  if (masters_.data != store_.values().data) stream.copy(store_.values(), masters_);
}

void Optimizer::give_corrections(double* scalars) const {
  const auto step = static_cast<double>(steps_ + 1);
  scalars[StepScalar::kBiasCorrection1] = 1 - std::pow(settings_.beta1, step);
  scalars[StepScalar::kBiasCorrection2] = 1 - std::pow(settings_.beta2, step);
}

void Optimizer::step(Stream& stream, ConstView scalars) {
  const bool split = masters_.data != store_.values().data;
  for (const Range& range : ranges_)
    run(stream, AdamW{.master = masters_.rows(range.begin, range.end),
                      .m = m_.rows(range.begin, range.end),
                      .v = v_.rows(range.begin, range.end),
                      .grad = store_.grads().rows(range.begin, range.end),
                      .value = split ? store_.values().rows(range.begin, range.end) : View{},
                      .scalars = scalars,
                      .beta1 = settings_.beta1,
                      .beta2 = settings_.beta2,
                      .eps = settings_.eps,
                      .weight_decay = range.decay ? settings_.weight_decay : 0.0});
}

}  // namespace megalith
