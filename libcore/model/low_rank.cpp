#include "libcore/model/low_rank.h"

#include <cmath>
#include <utility>

#include "libcore/base/text.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {
namespace {

/// The axis `slots` of a weight [..., slots, inner, in]; -1: the weight has no such axis.
int slot_axis(const Shape& weight) {
  return weight.rank - 3;
}

/// Views a tensor as [n, columns]; its last axes together have `columns` elements.
template <class V>
V matrix(const V& view, int64_t columns) {
  return view.as_shape({view.elements() / columns, columns});
}

Param declare_a(const TensorSplit& split, const LowRank::Layer& layer, const std::string& name, int64_t r) {
  const int64_t in = layer.weight.back();
  Param a{.name = layer.name + ".lora_A." + name, .global = {r, in}};
  // peft initializes A with uniform numbers; these normal numbers have the same standard deviation.
  a.init = Init::normal(1 / std::sqrt(3.0 * static_cast<double>(in)));
  a.adapter = true;
  if (layer.shard_axis == layer.weight.rank - 1) return cut(std::move(a), 1, split);
  a.grad_summed_over_tp = split.size > 1;
  return a;
}

Param declare_b(const TensorSplit& split, const LowRank::Layer& layer, const LowRankTarget& target,
                const TuningPlan& plan) {
  const int64_t r = plan.rank;
  Param b{.name = layer.name + ".lora_B." + target.part, .global = layer.weight};
  b.global[layer.weight.rank - 1] = r;
  if (target.slots > 0) b.global[slot_axis(layer.weight)] = target.slots;
  b.init = Init::constant(0);
  b.adapter = true;
  b.rate = plan.rate_of_b;
  if (layer.shard_axis < layer.weight.rank - 1) return cut(std::move(b), layer.shard_axis, split);
  b.grad_summed_over_tp = split.size > 1;
  return b;
}

/// The slots of the layer's outputs on this rank to which the adapter adds. b: the local shape of matrix B.
Slots slots_of(const LowRank::Layer& layer, const LowRankTarget& target, const Shape& b) {
  if (target.slots == 0) return {.inner = b.rows()};
  const int axis = slot_axis(layer.weight);
  if (axis < 0 || target.first + target.slots > layer.weight[axis])
    fail(ErrorKind::kInternal, quote(layer.name), ": no slots ", target.first, " to ",
         target.first + target.slots);
  return {.outer = axis == 0 ? 1 : b[0],
          .slots = layer.weight[axis],
          .first = target.first,
          .count = target.slots,
          .inner = b[axis + 1]};
}

}  // namespace

LowRank::LowRank(ParamTable& table, const TensorSplit& split, const Layer& layer, const LowRankTarget& target)
    : a_(&table.add(declare_a(split, layer, target.part, table.plan().rank))),
      b_(&table.add(declare_b(split, layer, target, table.plan()))),
      slots_(slots_of(layer, target, b_->local)),
      scale_(static_cast<float>(table.plan().scale)),
      dropout_(static_cast<float>(table.plan().dropout)),
      layer_(static_cast<uint32_t>(layer.number + 1)),
      site_(layer.site),
      first_column_(a_->shard_axis == kWhole ? 0 : a_->offset) {}

void LowRank::forward(const Ctx& ctx, View y, ConstView x) const {
  const ArenaScope scope(ctx.scratch);
  const View t = shrunk(ctx, dropped(ctx, x));
  const View out = matrix(y, slots_.columns());
  if (whole())
    return run(ctx.compute,
               Gemm{.c = out, .a = t, .b = b_matrix(b_->value), .trans_b = true, .accumulate = true});
  const View part = ctx.scratch.make(y.dtype, {out.shape[0], slots_.taken()}, "adapter output");
  run(ctx.compute, Gemm{.c = part, .a = t, .b = b_matrix(b_->value), .trans_b = true});
  run(ctx.compute, AddSlots{.y = out, .x = part, .slots = slots_});
}

void LowRank::backward_input(const Ctx& ctx, View dx, ConstView inside) const {
  const ArenaScope scope(ctx.scratch);
  const View rows = matrix(dx, in());
  const DropoutKey key = dropout(ctx, dx.shape[0]);
  if (key.p == 0) return run(ctx.compute, Gemm{.c = rows, .a = inside, .b = a_->value, .accumulate = true});
  const View grown = ctx.scratch.make(dx.dtype, {dx.shape[0], dx.shape[1], in()}, "adapter gradient");
  run(ctx.compute, Gemm{.c = matrix(grown, in()), .a = inside, .b = a_->value});
  const View whole_dx = dx.as_shape(grown.shape);
  run(ctx.compute, Dropout{.y = whole_dx, .x = grown, .key = key, .residual = whole_dx});
}

View LowRank::backward_weight(const Ctx& ctx, ConstView dy, ConstView x) const {
  const View dt =
      ctx.scratch.make(dy.dtype, {dy.elements() / slots_.columns(), rank()}, "adapter inside gradient");
  const ArenaScope scope(ctx.scratch);
  const ConstView in_rows = dropped(ctx, x), part = part_of(ctx, dy);
  run(ctx.compute, Gemm{.c = dt, .a = part, .b = b_matrix(b_->value)});
  run(ctx.compute, ScaleBy{.x = dt, .factor = scale_});
  if (b_->grad)
    run(ctx.compute, Gemm{.c = b_matrix(b_->grad),
                          .a = part,
                          .b = shrunk(ctx, in_rows),
                          .trans_a = true,
                          .accumulate = true});
  if (a_->grad)
    run(ctx.compute,
        Gemm{.c = a_->grad, .a = dt, .b = matrix(in_rows, in()), .trans_a = true, .accumulate = true});
  return dt;
}

ConstView LowRank::dropped(const Ctx& ctx, ConstView x) const {
  const DropoutKey key = dropout(ctx, x.shape[0]);
  if (key.p == 0) return x;
  const Shape rows{x.shape[0], x.shape[1], in()};
  const View masked = ctx.scratch.make(x.dtype, rows, "adapter input");
  run(ctx.compute, Dropout{.y = masked, .x = x.as_shape(rows), .key = key});
  return masked;
}

View LowRank::shrunk(const Ctx& ctx, ConstView dropped) const {
  const ConstView rows = matrix(dropped, in());
  const View t = ctx.scratch.make(rows.dtype, {rows.shape[0], rank()}, "adapter inside");
  run(ctx.compute, Gemm{.c = t, .a = rows, .b = a_->value, .trans_b = true});
  run(ctx.compute, ScaleBy{.x = t, .factor = scale_});
  return t;
}

ConstView LowRank::part_of(const Ctx& ctx, ConstView dy) const {
  const ConstView rows = matrix(dy, slots_.columns());
  if (whole()) return rows;
  const View part = ctx.scratch.make(dy.dtype, {rows.shape[0], slots_.taken()}, "adapter output gradient");
  run(ctx.compute, TakeSlots{.y = part, .x = rows, .slots = slots_});
  return part;
}

DropoutKey LowRank::dropout(const Ctx& ctx, int64_t s) const {
  return {.p = ctx.training ? dropout_ : 0,
          .seed = ctx.key.seed,
          .layer = layer_,
          .site = site_,
          .samples = ctx.key.samples,
          .rows = ctx.cp.rows(s),
          .first_column = first_column_};
}

}  // namespace megalith
