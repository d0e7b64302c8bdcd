#include "libcore/train/step/optimizer.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/model/ctx.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {
namespace {

bool own_masters(DType values) {
  return values != DType::kF32;
}

}  // namespace

size_t Optimizer::state_bytes(int64_t elements, DType values, DType first_moments) {
  return Arena::bytes_of(first_moments, {elements}) +
         Arena::bytes_of(DType::kF32, {elements}) * (own_masters(values) ? 2 : 1);
}

Optimizer::Optimizer(const ParamTable& table, const ParamStore& store, const Shards& shards, Stream& stream,
                     const AdamSettings& settings)
    : store_(store),
      shards_(shards),
      settings_(settings),
      parts_(owned_parts(table, store, shards)),
      ranges_(make_ranges()),
      arena_(make_arena(stream.backend(), "optimizer",
                        state_bytes(shards.elements(), store.values().dtype, settings.first_moments))) {
  const Shape flat{shards.elements()};
  m_ = arena_.make(settings.first_moments, flat, "first moments");
  v_ = arena_.make(DType::kF32, flat, "second moments");
  if (own_masters(store.values().dtype)) masters_ = arena_.make(DType::kF32, flat, "masters");
}

// Joins neighbouring parts with equal decay and rate into one range. A range may include the alignment gaps
// between its parts: they are zero in values and gradients, and remain so.
std::vector<Optimizer::Range> Optimizer::make_ranges() const {
  std::vector<Range> ranges;
  std::vector<OwnedPart> parts = parts_;
  std::sort(parts.begin(), parts.end(), [](const OwnedPart& a, const OwnedPart& b) { return a.at < b.at; });
  for (const OwnedPart& part : parts) {
    const int64_t begin = store_.offset(*part.param) + part.first;
    const OwnRange where{begin, begin + part.elements, part.at};
    const bool joins = !ranges.empty() && ranges.back().decay == part.param->decay &&
                       ranges.back().rate == part.param->rate &&
                       begin - ranges.back().where.end < ParamStore::kAlign &&
                       begin - ranges.back().where.begin == part.at - ranges.back().where.at;
    if (joins)
      ranges.back().where.end = where.end;
    else
      ranges.push_back({where, part.param->decay, part.param->rate});
  }
  return ranges;
}

View Optimizer::master(const OwnedPart& part) const {
  if (masters_) return masters_.rows(part.at, part.at + part.elements);
  const int64_t begin = store_.offset(*part.param) + part.first;
  return store_.values().rows(begin, begin + part.elements);
}

void Optimizer::take_values(Stream& stream) {
  if (!masters_) return;
  for (const OwnRange& range : shards_.own())
    stream.copy(masters_.rows(range.at, range.at + range.elements()),
                store_.values().rows(range.begin, range.end));
}

Optimizer::Corrections Optimizer::corrections(int64_t number) const {
  const auto step = static_cast<double>(number);
  return {1 - std::pow(settings_.beta1, step), 1 - std::pow(settings_.beta2, step)};
}

void Optimizer::step(Stream& stream, const GradBuffer& grads, ConstView scalars) {
  for (const auto& [where, decay, rate] : ranges_) {
    const View value = store_.values().rows(where.begin, where.end);
    const auto state = [&range = where](View flat) {
      return flat.rows(range.at, range.at + range.elements());
    };
    run(stream, AdamW{.master = masters_ ? state(masters_) : value,
                      .m = state(m_),
                      .v = state(v_),
                      .grad = grads.of(where),
                      .value = masters_ ? value : View{},
                      .scalars = scalars,
                      .beta1 = settings_.beta1,
                      .beta2 = settings_.beta2,
                      .eps = settings_.eps,
                      .weight_decay = decay ? settings_.weight_decay : 0.0,
                      .rate = rate});
  }
}

}  // namespace megalith
