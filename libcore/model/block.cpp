#include "libcore/model/block.h"

namespace megalith {
namespace {

enum Site : uint32_t { kAttentionOutput = 2, kMlpOutput = 3 };  // DropoutKey::site

std::string norm_name(int layer, const char* which) {
  return concat("decoder.layers.", layer, ".", which);
}

std::optional<Norm> second_norm(ParamTable& table, const TensorSplit& split, const ModelConfig& config,
                                int layer) {
  if (config.layer_norms() == 1) return {};
  return Norm(table, split, config, norm_name(layer, "pre_mlp_layernorm"));
}

/// Returns memory for a branch's output inside the tensor region. With sequence parallelism, this is new
/// memory for all rows; otherwise it is `y`, since the region is then left in place.
View branch_memory(const Ctx& ctx, View y) {
  if (!ctx.tp.sequence()) return y;
  Shape inside = y.shape;
  inside[0] *= ctx.tp.size();
  return ctx.scratch.make(y.dtype, inside, "branch output");
}

/// All rows of a branch's input. `kept` holds this rank's rows; if it is empty, no gradient needs the input,
/// and the result is empty. The input is gathered beside the gradients that do not need it.
Region::Late input_of(const Ctx& ctx, const View& kept) {
  return kept ? ctx.tp.enter_later(ctx.compute, ctx.scratch, kept) : Region::Late{};
}

}  // namespace

Block::Block(ParamTable& table, const TensorSplit& split, const ModelConfig& config, int layer)
    : layer_(layer),
      parallel_(config.parallel_residual),
      dropout_(static_cast<float>(config.hidden_dropout)),
      norm1_(table, split, config, norm_name(layer, "input_layernorm")),
      attention_(table, split, config, layer),
      norm2_(second_norm(table, split, config, layer)),
      mlp_(table, split, config, layer) {}

Block::Saved Block::make_saved(const Ctx& ctx, Arena& arena, ConstView x, bool attention_core) const {
  const int64_t s = ctx.tp.sequence() ? x.shape[0] * ctx.tp.size() : x.shape[0];
  const int64_t b = x.shape[1];
  Saved saved;
  saved.norm1 = norm1_.make_saved(arena, x.shape.rows());
  if (attention_.keeps_input() || (!norm2_ && mlp_.keeps_input()))
    saved.n1 = arena.make(x.dtype, x.shape, "first norm");
  saved.attention = attention_.make_saved(arena, s, b, x.dtype, attention_core);
  saved.h = arena.make(x.dtype, x.shape, "after attention");
  if (norm2_) saved.norm2 = norm2_->make_saved(arena, x.shape.rows());
  if (norm2_ && mlp_.keeps_input()) saved.n2 = arena.make(x.dtype, x.shape, "second norm");
  saved.mlp = mlp_.make_saved(arena, s, b, x.dtype);
  return saved;
}

void Block::forward(const Ctx& ctx, View y, ConstView x, const Saved& saved, const Neighbours& beside) const {
  const ArenaScope scope(ctx.scratch);
  const View n1 = saved.n1 ? saved.n1 : ctx.scratch.make(x.dtype, x.shape, "first norm");
  if (!beside.normed) norm1_.forward(ctx, n1, x, saved.norm1);
  View branch = attention_.forward(ctx, branch_memory(ctx, saved.h), n1, saved.attention);

  View n2 = norm2_ ? saved.n2 : n1;
  if (!n2) n2 = saved.n1 ? ctx.scratch.make(x.dtype, x.shape, "second norm") : n1;
  enter_mlp(ctx, n2, join(ctx, saved.h, branch, x, kAttentionOutput), saved.norm2);
  branch = mlp_.forward(ctx, branch_memory(ctx, y), n2, saved.mlp);
  const Norm::Join end = join(ctx, y, branch, saved.h, kMlpOutput);
  if (beside.next != nullptr) {
    if (ctx.params) ctx.params->unit_begins(ctx.compute, beside.next_unit);
    return beside.next->norm1_.forward(ctx, beside.next_saved->n1, end, beside.next_saved->norm1);
  }
  run(ctx.compute, Dropout{.y = end.sum, .x = end.branch, .key = end.dropout, .residual = end.residual});
}

void Block::enter_mlp(const Ctx& ctx, View n2, const Norm::Join& h, const Norm::Saved& saved) const {
  if (!parallel_) return norm2_->forward(ctx, n2, h, saved);
  run(ctx.compute, Dropout{.y = h.sum, .x = h.branch, .key = h.dropout, .residual = h.residual});
  if (norm2_) norm2_->forward(ctx, n2, h.residual, saved);
}

void Block::backward(const Ctx& ctx, View d, ConstView x, const Saved& saved) const {
  const ArenaScope outer(ctx.scratch);
  // Gradient of x but for the attention's part; with parallel branches d stays the gradient of both. With one
  // norm for both, the MLP's part of the norm's gradient.
  const View beside = parallel_ ? ctx.scratch.make(d.dtype, d.shape, "gradient beside attention") : d;
  {
    const ArenaScope scope(ctx.scratch);
    const Region::Late dy = into_branch(ctx, d, kMlpOutput);
    const Region::Late inside = input_of(ctx, norm2_ ? saved.n2 : saved.n1);
    const View dn = ctx.scratch.make(d.dtype, dy.rows.shape, "norm gradient");
    const ConstView dn2 = mlp_.backward(ctx, dn, dy, inside, saved.mlp);
    if (norm2_)
      norm2_->backward(ctx, {.dx = beside, .dy = dn2, .x = parallel_ ? x : saved.h, .add = d}, saved.norm2);
    else
      run(ctx.compute, Dropout{.y = beside, .x = dn2, .key = {}});
  }
  const ArenaScope scope(ctx.scratch);
  const Region::Late dy = into_branch(ctx, d, kAttentionOutput);
  const Region::Late inside = input_of(ctx, saved.n1);
  const View dn = ctx.scratch.make(d.dtype, dy.rows.shape, "norm gradient");
  const ConstView dn1 = attention_.backward(ctx, dn, dy, inside, saved.attention);
  if (norm2_) return norm1_.backward(ctx, {.dx = d, .dy = dn1, .x = x, .add = beside}, saved.norm1);
  run(ctx.compute, Dropout{.y = beside, .x = dn1, .key = {}, .residual = beside});
  norm1_.backward(ctx, {.dx = d, .dy = beside, .x = x, .add = d}, saved.norm1);
}

void Block::cached(const Ctx& ctx, View y, ConstView x, const Reading& reading, size_t local_layer) const {
  const ArenaScope scope(ctx.scratch);
  const View normed = ctx.scratch.make(x.dtype, x.shape, "norm");
  const View h = ctx.scratch.make(x.dtype, x.shape, "after attention");
  norm1_.forward(ctx, normed, x, {});
  const View attended = attention_.cached(ctx, h, normed, reading, local_layer);
  enter_mlp(ctx, normed, join(ctx, h, attended, x, kAttentionOutput), {});
  const Mlp::Saved saved = mlp_.make_saved(ctx.scratch, x.shape[0], x.shape[1], x.dtype);
  run(ctx.compute, Dropout{.y = y,
                           .x = mlp_.forward(ctx, y, normed, saved),
                           .key = dropout(ctx, x, kMlpOutput),
                           .residual = h});
}

Norm::Join Block::join(const Ctx& ctx, View y, ConstView branch, ConstView x, uint32_t site) const {
  return {.sum = y, .branch = branch, .residual = x, .dropout = dropout(ctx, x, site)};
}

Region::Late Block::into_branch(const Ctx& ctx, ConstView d, uint32_t site) const {
  const DropoutKey key = dropout(ctx, d, site);
  if (key.p == 0) return ctx.tp.leave_grad_by_piece(ctx.compute, ctx.scratch, d);
  const View masked = ctx.scratch.make(d.dtype, d.shape, "masked gradient");
  run(ctx.compute, Dropout{.y = masked, .x = d, .key = key});
  return ctx.tp.leave_grad_by_piece(ctx.compute, ctx.scratch, masked);
}

DropoutKey Block::dropout(const Ctx& ctx, ConstView x, uint32_t site) const {
  return {.p = ctx.training ? dropout_ : 0,
          .seed = ctx.key.seed,
          .layer = static_cast<uint32_t>(layer_ + 1),
          .site = site,
          .samples = ctx.key.samples,
          .rows = ctx.outside_rows(x.shape[0])};
}

}  // namespace megalith
