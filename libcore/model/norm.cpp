#include "libcore/model/norm.h"

#include <utility>

namespace megalith {
namespace {

Param& declare(ParamTable& table, const Norm::Place& place, const char* which, double value) {
  Param param{.name = place.name + which, .global = {place.width}};
  param.init = Init::constant(value);
  param.decay = false;
  param.grad_summed_over_tp = place.grad_summed_over_tp;
  return table.add(std::move(param));
}

}  // namespace

Norm::Norm(ParamTable& table, const TensorSplit& split, const ModelConfig& config, const std::string& name)
    : Norm(table, config, {name, config.hidden, split.sequence && split.size > 1}) {}

Norm::Norm(ParamTable& table, const ModelConfig& config, const Place& place)
    : rms_(config.norm == Normalization::kRmsNorm),
      eps_(static_cast<float>(config.norm_epsilon)),
      weight_(&declare(table, place, ".weight", 1)) {
  if (!rms_) bias_ = &declare(table, place, ".bias", 0);
}

Norm::Saved Norm::make_saved(Arena& arena, int64_t rows) const {
  Saved saved;
  if (!rms_) saved.mean = arena.make(DType::kF32, {rows}, "norm mean");
  saved.rstd = arena.make(DType::kF32, {rows}, "norm rstd");
  return saved;
}

void Norm::forward(const Ctx& ctx, View y, ConstView x, const Saved& saved) const {
  forward_part(ctx, y, x, saved, {});
}

void Norm::forward_part(const Ctx& ctx, View y, ConstView x, const Saved& saved, const RowPart& part) const {
  run_forward(ctx, y, {.sum = {}, .branch = x, .residual = {}, .dropout = {}}, saved, part);
}

void Norm::forward(const Ctx& ctx, View y, const Join& join, const Saved& saved) const {
  run_forward(ctx, y, join, saved, {});
}

void Norm::run_forward(const Ctx& ctx, View y, const Join& join, const Saved& saved,
                       const RowPart& part) const {
  if (rms_)
    return run(ctx.compute, RmsNorm{.y = y,
                                    .x = join.branch,
                                    .w = weight_->value,
                                    .rstd = saved.rstd,
                                    .residual = join.residual,
                                    .sum = join.sum,
                                    .dropout = join.dropout,
                                    .eps = eps_,
                                    .part = part});
  run(ctx.compute, LayerNorm{.y = y,
                             .x = join.branch,
                             .w = weight_->value,
                             .b = bias_->value,
                             .mean = saved.mean,
                             .rstd = saved.rstd,
                             .residual = join.residual,
                             .sum = join.sum,
                             .dropout = join.dropout,
                             .eps = eps_,
                             .part = part});
}

void Norm::backward(const Ctx& ctx, const Grad& g, const Saved& saved) const {
  if (rms_)
    return run(ctx.compute, RmsNormGrad{.dx = g.dx,
                                        .dw = weight_->grad,
                                        .dy = g.dy,
                                        .x = g.x,
                                        .w = weight_->value,
                                        .rstd = saved.rstd,
                                        .add = g.add,
                                        .part = g.part});
  run(ctx.compute, LayerNormGrad{.dx = g.dx,
                                 .dw = weight_->grad,
                                 .db = bias_->grad,
                                 .dy = g.dy,
                                 .x = g.x,
                                 .w = weight_->value,
                                 .mean = saved.mean,
                                 .rstd = saved.rstd,
                                 .add = g.add,
                                 .part = g.part});
}

}  // namespace megalith
