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

namespace {

/// The heads of the queries and of the keys among the rows of a packed QKV.
struct HeadRows {
  RowPart queries, keys;
};
HeadRows head_rows(ConstView qkv) {
  const int64_t heads = qkv.shape[3];
  return {.queries = {.first = 0, .count = heads - 2, .of = heads},
          .keys = {.first = heads - 2, .count = 1, .of = heads}};
}

}  // namespace

HeadNorms::HeadNorms(ParamTable& table, const TensorSplit& split, const ModelConfig& config,
                     const std::string& prefix)
    : query_(table, config, {prefix + "q_layernorm", config.kv_channels, split.size > 1}),
      key_(table, config, {prefix + "k_layernorm", config.kv_channels, split.size > 1}) {}

HeadNorms::Saved HeadNorms::make_saved(Arena& arena, ConstView qkv) const {
  const int64_t heads = qkv.shape.rows();
  const HeadRows rows = head_rows(qkv);
  return {query_.make_saved(arena, rows_taken(rows.queries, heads)),
          key_.make_saved(arena, rows_taken(rows.keys, heads))};
}

void HeadNorms::forward(const Ctx& ctx, View normed, ConstView qkv, const Saved& saved) const {
  const HeadRows rows = head_rows(qkv);
  if (normed.data != qkv.data) run(ctx.compute, CopyKeyValues{.to = normed, .from = qkv});
  query_.forward_part(ctx, normed, qkv, saved.query, rows.queries);
  key_.forward_part(ctx, normed, qkv, saved.key, rows.keys);
}

void HeadNorms::backward(const Ctx& ctx, View d, ConstView qkv, const Saved& saved) const {
  const HeadRows rows = head_rows(qkv);
  query_.backward(ctx, {.dx = d, .dy = d, .x = qkv, .part = rows.queries}, saved.query);
  key_.backward(ctx, {.dx = d, .dy = d, .x = qkv, .part = rows.keys}, saved.key);
}

}  // namespace megalith
