#include "libcore/model/linear.h"

#include <utility>

namespace megalith {
namespace {

Shape without_last(const Shape& shape) {
  Shape out = shape;
  out[shape.rank - 1] = 1;
  --out.rank;
  return out;
}

ConstView matrix(ConstView view, int64_t columns) {
  return view.as_shape({view.elements() / columns, columns});
}
View matrix(View view, int64_t columns) {
  return view.as_shape({view.elements() / columns, columns});
}

}  // namespace

Linear::Linear(ParamTable& table, const TensorSplit& split, const LinearShape& shape) {
  const bool row_parallel = shape.shard_axis == shape.weight.rank - 1;
  Param weight{.name = shape.name + ".weight", .global = shape.weight};
  weight.init = Init::normal(shape.init_std);
  weight.int8 = table.plan().frozen && table.plan().int8;
  weight_ = &table.add(cut(std::move(weight), shape.shard_axis, split));
  declare_adapters(table, split, shape);
  if (!shape.bias) return;
  Param bias{.name = shape.name + ".bias", .global = without_last(shape.weight)};
  bias.init = Init::constant(0);
  bias.decay = false;
  bias_ = &table.add(row_parallel ? std::move(bias) : cut(std::move(bias), shape.shard_axis, split));
  adds_bias_ = !row_parallel || split.rank == 0;
}

void Linear::declare_adapters(ParamTable& table, const TensorSplit& split, const LinearShape& shape) {
  LowRank::Layer layer{shape.name, shape.weight, shape.shard_axis, shape.layer, shape.site};
  for (const LowRankTarget& target : table.plan().targets) {
    if (!shape.name.ends_with("." + target.layer)) continue;
    adapters_.emplace_back(table, split, layer, target);
    ++layer.site;
  }
}

void Linear::forward(const Ctx& ctx, View y, ConstView x, View before_gelu) const {
  if (before_gelu && !fuses_gelu(x)) {
    forward(ctx, before_gelu, x);
    return run(ctx.compute, Activate{.y = y, .x = before_gelu, .function = ActivationFunction::kGeluTanh});
  }
  project(ctx, y, x, before_gelu);
  for (const LowRank& adapter : adapters_) adapter.forward(ctx, y, x);
}

void Linear::entering(const Ctx& ctx, View y, ConstView x, View before_gelu) const {
  const ArenaScope scope(ctx.scratch);
  if (!adapters_.empty()) return forward(ctx, y, ctx.tp.enter(ctx.compute, ctx.scratch, x), before_gelu);
  ctx.tp.enter(ctx.compute, ctx.scratch, x, [&](ConstView whole, int64_t begin, int64_t end) {
    forward(ctx, y.rows(begin, end), whole.rows(begin, end),
            before_gelu ? before_gelu.rows(begin, end) : View{});
  });
}

View Linear::leaving(const Ctx& ctx, View y, ConstView x) const {
  if (!adapters_.empty()) {
    forward(ctx, y, x);
    return ctx.tp.leave(ctx.compute, y);
  }
  return ctx.tp.leave(ctx.compute, y, [&](int64_t begin, int64_t end) {
    project(ctx, y.rows(begin, end), x.rows(begin, end));
  });
}

void Linear::project(const Ctx& ctx, View y, ConstView x, View before_gelu) const {
  if (!multiplies(x))
    return run(ctx.compute, Project{.y = matrix(y, out()),
                                    .x = matrix(x, in()),
                                    .w = weight_matrix(),
                                    .scales = weight_->scales,
                                    .bias = adds_bias_ ? bias_->value.as_shape({out()}) : ConstView{}});
  const ArenaScope scope(ctx.scratch);
  run(ctx.compute, Gemm{.c = matrix(y, out()),
                        .a = matrix(x, in()),
                        .b = wide_weight(ctx, x.dtype),
                        .bias = adds_bias_ ? bias_->value.as_shape({out()}) : ConstView{},
                        .trans_b = true,
                        .before_gelu = before_gelu});
}

ConstView Linear::wide_weight(const Ctx& ctx, DType dtype) const {
  if (!weight_->int8) return weight_matrix();
  const Shape shape{out(), in()};
  const View wide = ctx.scratch.make(DType::kF32, shape, "widened weight");
  run(ctx.compute, WidenRows{.w = wide, .q = weight_matrix(), .scales = weight_->scales});
  if (dtype == DType::kF32) return wide;
  const View rounded = ctx.scratch.make(dtype, shape, "rounded weight");
  ctx.compute.copy(rounded, wide);
  return rounded;
}

void Linear::backward(const Ctx& ctx, View dx, ConstView dy, ConstView x, ConstView before_gelu) const {
  const ArenaScope scope(ctx.scratch);
  add_grads(ctx, dy, x);
  std::vector<View> inside;
  for (const LowRank& adapter : adapters_) inside.push_back(adapter.backward_weight(ctx, dy, x));
  unproject(ctx, dx, dy, adapters_.empty() ? before_gelu : ConstView{});
  if (adapters_.empty()) return;
  for (size_t i = 0; i < adapters_.size(); ++i) adapters_[i].backward_input(ctx, dx, inside[i]);
  if (before_gelu)
    run(ctx.compute,
        ActivateGrad{.dx = dx, .dy = dx, .x = before_gelu, .function = ActivationFunction::kGeluTanh});
}

void Linear::backward_entering(const Ctx& ctx, View dx, const Region::Late& dy, ConstView x,
                               ConstView before_gelu) const {
  if (dy.parts.size() == 1 || !adapters_.empty()) {
    dy.wait(ctx.compute);
    return backward(ctx, dx, dy.rows, x, before_gelu);
  }
  dy.each(ctx.compute, [&](int64_t begin, int64_t end) {
    unproject(ctx, dx.rows(begin, end), dy.rows.rows(begin, end),
              before_gelu ? before_gelu.rows(begin, end) : ConstView{});
  });
  add_grads(ctx, dy.rows, x);
}

View Linear::backward_leaving(const Ctx& ctx, View dx, ConstView dy, ConstView x) const {
  if (!adapters_.empty()) {
    backward(ctx, dx, dy, x);
    return ctx.tp.enter_grad(ctx.compute, dx);
  }
  add_grads(ctx, dy, x);
  return ctx.tp.enter_grad(ctx.compute, dx, [&](int64_t begin, int64_t end) {
    unproject(ctx, dx.rows(begin, end), dy.rows(begin, end));
  });
}

void Linear::unproject(const Ctx& ctx, View dx, ConstView dy, ConstView before_gelu) const {
  const ArenaScope scope(ctx.scratch);
  run(ctx.compute, Gemm{.c = matrix(dx, in()),
                        .a = matrix(dy, out()),
                        .b = wide_weight(ctx, dy.dtype),
                        .gelu_grad_at = before_gelu});
}

void Linear::add_grads(const Ctx& ctx, ConstView dy, ConstView x) const {
  const View bias_grad = bias_ && bias_->grad ? bias_->grad.as_shape({out()}) : View{};
  if (weight_->grad)
    return run(ctx.compute, Gemm{.c = weight_->grad.as_shape({out(), in()}),
                                 .a = matrix(dy, out()),
                                 .b = matrix(x, in()),
                                 .trans_a = true,
                                 .accumulate = true,
                                 .bias_grad = bias_grad});
  if (bias_grad) run(ctx.compute, BiasGrad{.dbias = bias_grad, .dy = matrix(dy, out())});
}

}  // namespace megalith
