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
    : joint_(make_joint(table, split, config, prefix)) {
  if (joint_) return;
  query_.emplace(table, config, Norm::Place{prefix + "q_layernorm", config.kv_channels, split.size > 1});
  key_.emplace(table, config, Norm::Place{prefix + "k_layernorm", config.kv_channels, split.size > 1});
}

std::optional<HeadNorms::Joint> HeadNorms::make_joint(ParamTable& table, const TensorSplit& split,
                                                      const ModelConfig& config, const std::string& prefix) {
  if (!config.qk_norm_all_heads) return {};
  const auto declare = [&](const char* name, int64_t width) {
    Param param{.name = concat(prefix, name, ".weight"), .global = {width}};
    param.init = Init::constant(1);
    param.decay = false;
    return &table.add(cut(std::move(param), 0, split));
  };
  const int64_t queries = int64_t{config.heads} * config.kv_channels,
                keys = int64_t{config.kv_heads()} * config.kv_channels;
  Param* const query = declare("q_layernorm", queries);
  return Joint{query, declare("k_layernorm", keys), queries, keys, static_cast<float>(config.norm_epsilon)};
}

namespace {
View make_head_sums(Arena& arena, ConstView qkv) {
  return arena.make(DType::kF32, {2, qkv.shape[0] * qkv.shape[1]}, "sums over heads");
}
}  // namespace

HeadNorms::Saved HeadNorms::make_kept(Arena& arena, ConstView qkv) const {
  return {.query = {}, .key = {}, .squares = joint_ ? make_head_sums(arena, qkv) : View{}};
}

HeadNorms::Saved HeadNorms::make_saved(Arena& arena, ConstView qkv, const Saved& kept) const {
  if (joint_) return kept;
  const int64_t heads = qkv.shape.rows();
  const HeadRows rows = head_rows(qkv);
  return {query_->make_saved(arena, rows_taken(rows.queries, heads)),
          key_->make_saved(arena, rows_taken(rows.keys, heads)),
          {}};
}

void HeadNorms::forward(const Ctx& ctx, View normed, ConstView qkv, const Saved& saved) const {
  if (joint_) {
    const ArenaScope scope(ctx.scratch);
    const View sums = saved.squares ? saved.squares : make_head_sums(ctx.scratch, qkv);
    run(ctx.compute, HeadSums{.sums = sums, .x = qkv});
    add_ranks(ctx, sums);
    return scale_joint(ctx, normed, qkv, sums);
  }
  const HeadRows rows = head_rows(qkv);
  if (normed.data != qkv.data) run(ctx.compute, CopyKeyValues{.to = normed, .from = qkv});
  query_->forward_part(ctx, normed, qkv, saved.query, rows.queries);
  key_->forward_part(ctx, normed, qkv, saved.key, rows.keys);
}

void HeadNorms::again(const Ctx& ctx, View normed, ConstView qkv, const Saved& saved) const {
  if (joint_) return scale_joint(ctx, normed, qkv, saved.squares);
  forward(ctx, normed, qkv, saved);
}

void HeadNorms::backward(const Ctx& ctx, View d, ConstView qkv, const Saved& saved) const {
  if (joint_) return backward_joint(ctx, d, qkv, saved.squares);
  const HeadRows rows = head_rows(qkv);
  query_->backward(ctx, {.dx = d, .dy = d, .x = qkv, .part = rows.queries}, saved.query);
  key_->backward(ctx, {.dx = d, .dy = d, .x = qkv, .part = rows.keys}, saved.key);
}

void HeadNorms::add_ranks(const Ctx& ctx, View sums) {
  if (ctx.tp.size() > 1) ctx.tp.tensor().all_reduce(ctx.compute, sums, Reduce::kSum);
}

void HeadNorms::scale_joint(const Ctx& ctx, View normed, ConstView qkv, ConstView squares) const {
  run(ctx.compute, HeadsNorm{.y = normed,
                             .x = qkv,
                             .q_w = joint_->query->value,
                             .k_w = joint_->key->value,
                             .squares = squares,
                             .q_width = joint_->query_width,
                             .k_width = joint_->key_width,
                             .eps = joint_->eps});
}

void HeadNorms::backward_joint(const Ctx& ctx, View d, ConstView qkv, ConstView squares) const {
  const ArenaScope scope(ctx.scratch);
  const View dots = make_head_sums(ctx.scratch, qkv);
  const ConstView q_w = joint_->query->value, k_w = joint_->key->value;
  run(ctx.compute, HeadSums{.sums = dots, .x = qkv, .d = d, .q_w = q_w, .k_w = k_w});
  add_ranks(ctx, dots);
  run(ctx.compute, HeadsNormGrad{.d = d,
                                 .dq_w = joint_->query->grad,
                                 .dk_w = joint_->key->grad,
                                 .x = qkv,
                                 .q_w = q_w,
                                 .k_w = k_w,
                                 .squares = squares,
                                 .dots = dots,
                                 .q_width = joint_->query_width,
                                 .k_width = joint_->key_width,
                                 .eps = joint_->eps});
}

BranchNorm::BranchNorm(ParamTable& table, const TensorSplit& split, const ModelConfig& config,
                       const std::string& name)
    : norm_(table, split, config, name) {}

BranchNorm::Saved BranchNorm::make_saved(Arena& arena, ConstView x) const {
  return {.branch = arena.make(x.dtype, x.shape, "branch to normalize"),
          .norm = norm_.make_saved(arena, x.shape.rows())};
}

View BranchNorm::forward(const Ctx& ctx, ConstView branch, const Saved& saved) const {
  if (saved.branch && saved.branch.data != branch.data) ctx.compute.copy(saved.branch, branch);
  const View normed = ctx.scratch.make(branch.dtype, branch.shape, "normed branch");
  norm_.forward(ctx, normed, branch, saved.norm);
  return normed;
}

View BranchNorm::backward(const Ctx& ctx, ConstView dy, const Saved& saved) const {
  const View dx = ctx.scratch.make(dy.dtype, dy.shape, "branch gradient");
  norm_.backward(ctx, {.dx = dx, .dy = dy, .x = saved.branch}, saved.norm);
  return dx;
}

}  // namespace megalith
