#include "libcore/model/norm.h"

#include <utility>

namespace megalith {
namespace {

Param& declare(ParamTable& table, const TensorSplit& split, const std::string& name, int64_t hidden,
               double value) {
  Param param{.name = name, .global = {hidden}};
  param.init = Init::constant(value);
  param.decay = false;
  param.grad_summed_over_tp = split.sequence && split.size > 1;
  return table.add(std::move(param));
}

}  // namespace

Norm::Norm(ParamTable& table, const TensorSplit& split, const ModelConfig& config, const std::string& name)
    : rms_(config.norm == Normalization::kRmsNorm),
      eps_(static_cast<float>(config.norm_epsilon)),
      weight_(&declare(table, split, name + ".weight", config.hidden, 1)) {
  if (!rms_) bias_ = &declare(table, split, name + ".bias", config.hidden, 0);
}

Norm::Saved Norm::make_saved(Arena& arena, int64_t rows) const {
  Saved saved;
  if (!rms_) saved.mean = arena.make(DType::kF32, {rows}, "norm mean");
  saved.rstd = arena.make(DType::kF32, {rows}, "norm rstd");
  return saved;
}

void Norm::forward(const Ctx& ctx, View y, ConstView x, const Saved& saved) const {
  forward(ctx, y, Join{.sum = {}, .branch = x, .residual = {}, .dropout = {}}, saved);
}

void Norm::forward(const Ctx& ctx, View y, const Join& join, const Saved& saved) const {
  if (rms_)
    return run(ctx.compute, RmsNorm{.y = y,
                                    .x = join.branch,
                                    .w = weight_->value,
                                    .rstd = saved.rstd,
                                    .residual = join.residual,
                                    .sum = join.sum,
                                    .dropout = join.dropout,
                                    .eps = eps_});
  run(ctx.compute, LayerNorm{.y = y,
                             .x = join.branch,
                             .w = weight_->value,
                             .b = bias_->value,
                             .mean = saved.mean,
                             .rstd = saved.rstd,
                             .residual = join.residual,
                             .sum = join.sum,
                             .dropout = join.dropout,
                             .eps = eps_});
}

void Norm::backward(const Ctx& ctx, const Grad& g, const Saved& saved) const {
  if (rms_)
    return run(ctx.compute, RmsNormGrad{.dx = g.dx,
                                        .dw = weight_->grad,
                                        .dy = g.dy,
                                        .x = g.x,
                                        .w = weight_->value,
                                        .rstd = saved.rstd,
                                        .add = g.add});
  run(ctx.compute, LayerNormGrad{.dx = g.dx,
                                 .dw = weight_->grad,
                                 .db = bias_->grad,
                                 .dy = g.dy,
                                 .x = g.x,
                                 .w = weight_->value,
                                 .mean = saved.mean,
                                 .rstd = saved.rstd,
                                 .add = g.add});
}

}  // namespace megalith
