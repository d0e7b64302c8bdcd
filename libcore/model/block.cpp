#include "libcore/model/block.h"

#include <utility>

namespace megalith {
namespace {

enum Site : uint32_t { kAttentionOutput = 2, kMlpOutput = 3 };  // DropoutKey::site

/// A norm of a layer, if the model has it.
template <class Kind>
// NOLINTNEXTLINE(readability-function-size): what a norm's constructor takes, and whether there is one
std::optional<Kind> make_norm(bool has, ParamTable& table, const TensorSplit& split,
                              const ModelConfig& config, int layer, const char* which) {
  if (!has) return {};
  return std::optional<Kind>(std::in_place, table, split, config,
                             concat("decoder.layers.", layer, ".", which));
}

/// All rows of a branch's input. `kept` holds this rank's rows; if it is empty, no gradient needs the input,
/// and the result is empty. The input is gathered beside the gradients that do not need it.
Region::Late input_of(const Ctx& ctx, ConstView kept) {
  return kept ? ctx.tp.enter_later(ctx.compute, ctx.scratch, kept) : Region::Late{};
}

/// Writes y = x + dropout(branch).
void add_branch(const Ctx& ctx, const Norm::Join& y) {
  run(ctx.compute, Dropout{.y = y.sum, .x = y.branch, .key = y.dropout, .residual = y.residual});
}

}  // namespace

Block::Block(ParamTable& table, const TensorSplit& split, const ModelConfig& config, int layer)
    : layer_(layer),
      parallel_(config.parallel_residual),
      dropout_(static_cast<float>(config.hidden_dropout)),
      multiplier_(static_cast<float>(config.residual_multiplier)),
      norm1_(make_norm<Norm>(config.norms_before(), table, split, config, layer, "input_layernorm")),
      attention_(table, split, config, layer),
      after1_(make_norm<BranchNorm>(config.norms_after(), table, split, config, layer,
                                    "post_self_attn_layernorm")),
      norm2_(make_norm<Norm>(config.has_second_norm(), table, split, config, layer, "pre_mlp_layernorm")),
      mlp_(table, split, config, layer),
      after2_(
          make_norm<BranchNorm>(config.norms_after(), table, split, config, layer, "post_mlp_layernorm")) {}

Block::Saved Block::make_saved(const Ctx& ctx, Arena& arena, ConstView x, bool attention_core) const {
  const int64_t s = ctx.tp.sequence() ? x.shape[0] * ctx.tp.size() : x.shape[0];
  const int64_t b = x.shape[1];
  Saved saved;
  if (norm1_) saved.norm1 = norm1_->make_saved(arena, x.shape.rows());
  if (norm1_ && (attention_.keeps_input() || (!norm2_ && mlp_.keeps_input())))
    saved.n1 = arena.make(x.dtype, x.shape, "first norm");
  saved.attention = attention_.make_saved(arena, s, b, x.dtype, attention_core);
  if (after1_) saved.after1 = after1_->make_saved(arena, x);
  saved.h = arena.make(x.dtype, x.shape, "after attention");
  if (norm2_) saved.norm2 = norm2_->make_saved(arena, x.shape.rows());
  if (norm2_ && mlp_.keeps_input()) saved.n2 = arena.make(x.dtype, x.shape, "second norm");
  saved.mlp = mlp_.make_saved(arena, s, b, x.dtype);
  if (after2_) saved.after2 = after2_->make_saved(arena, x);
  return saved;
}

void Block::forward(const Ctx& ctx, View y, ConstView x, const Saved& saved, const Neighbours& beside) const {
  const ArenaScope scope(ctx.scratch);
  View n1 = saved.n1;
  if (norm1_ && !n1) n1 = ctx.scratch.make(x.dtype, x.shape, "first norm");
  if (norm1_ && !beside.normed) norm1_->forward(ctx, n1, x, saved.norm1);
  const End attended = attention_end(saved), fed = mlp_end(saved);
  View branch =
      attention_.forward(ctx, branch_memory(ctx, attended, saved.h), norm1_ ? n1 : x, saved.attention);
  View n2 = norm2_ ? saved.n2 : n1;
  if (norm2_ && !n2) n2 = saved.n1 ? ctx.scratch.make(x.dtype, x.shape, "second norm") : n1;
  const ConstView in = enter_mlp(ctx, n2, join(ctx, saved.h, branch, x, attended), saved.norm2);
  branch = mlp_.forward(ctx, branch_memory(ctx, fed, y), in, saved.mlp);
  const Norm::Join end = join(ctx, y, branch, saved.h, fed);
  if (beside.next == nullptr) return add_branch(ctx, end);
  if (ctx.params) ctx.params->unit_begins(ctx.compute, beside.next_unit);
  beside.next->norm1_->forward(ctx, beside.next_saved->n1, end, beside.next_saved->norm1);
}

ConstView Block::enter_mlp(const Ctx& ctx, View n2, const Norm::Join& h, const Norm::Saved& saved) const {
  if (norm2_ && !parallel_) {
    norm2_->forward(ctx, n2, h, saved);
    return n2;
  }
  add_branch(ctx, h);
  if (!parallel_) return h.sum;
  if (norm2_) norm2_->forward(ctx, n2, h.residual, saved);
  return n2;
}

void Block::backward(const Ctx& ctx, View d, ConstView x, const Saved& saved) const {
  const ArenaScope outer(ctx.scratch);
  // Gradient of x but for the attention's part; with parallel branches d stays the gradient of both. With one
  // norm for both, the MLP's part of the norm's gradient.
  const View beside = parallel_ ? ctx.scratch.make(d.dtype, d.shape, "gradient beside attention") : d;
  {
    const ArenaScope scope(ctx.scratch);
    const Region::Late dy = into_branch(ctx, d, mlp_end(saved));
    const ConstView in = norm2_ ? saved.n2 : norm1_ ? saved.n1 : mlp_.keeps_input() ? saved.h : View{};
    const Region::Late inside = input_of(ctx, in);
    const View dn = ctx.scratch.make(d.dtype, dy.rows.shape, "norm gradient");
    const ConstView dn2 = mlp_.backward(ctx, dn, dy, inside, saved.mlp);
    if (parallel_ && !norm2_)
      run(ctx.compute, Dropout{.y = beside, .x = dn2, .key = {}});
    else
      out_of_branch(ctx, norm2_, {.dx = beside, .dy = dn2, .x = parallel_ ? x : saved.h, .add = d},
                    saved.norm2);
  }
  const ArenaScope scope(ctx.scratch);
  const Region::Late dy = into_branch(ctx, d, attention_end(saved));
  const ConstView in = norm1_ ? saved.n1 : attention_.keeps_input() ? x : ConstView{};
  const Region::Late inside = input_of(ctx, in);
  const View dn = ctx.scratch.make(d.dtype, dy.rows.shape, "norm gradient");
  const ConstView dn1 = attention_.backward(ctx, dn, dy, inside, saved.attention);
  if (!parallel_ || norm2_)
    return out_of_branch(ctx, norm1_, {.dx = d, .dy = dn1, .x = x, .add = beside}, saved.norm1);
  ctx.compute.add(beside, dn1);
  norm1_->backward(ctx, {.dx = d, .dy = beside, .x = x, .add = d}, saved.norm1);
}

void Block::out_of_branch(const Ctx& ctx, const std::optional<Norm>& norm, const Norm::Grad& g,
                          const Norm::Saved& saved) {
  if (norm) return norm->backward(ctx, g, saved);
  ctx.compute.add(g.dx, g.dy);
}

void Block::cached(const Ctx& ctx, View y, ConstView x, const Reading& reading, size_t local_layer) const {
  const ArenaScope scope(ctx.scratch);
  const Saved none;
  const View normed = ctx.scratch.make(x.dtype, x.shape, "norm");
  const View h = ctx.scratch.make(x.dtype, x.shape, "after attention");
  if (norm1_) norm1_->forward(ctx, normed, x, {});
  const View attended = attention_.cached(ctx, h, norm1_ ? normed : x, reading, local_layer);
  const ConstView in = enter_mlp(ctx, normed, join(ctx, h, attended, x, attention_end(none)), {});
  const Mlp::Saved saved = mlp_.make_saved(ctx.scratch, x.shape[0], x.shape[1], x.dtype);
  add_branch(ctx, join(ctx, y, mlp_.forward(ctx, y, in, saved), h, mlp_end(none)));
}

Block::End Block::attention_end(const Saved& saved) const {
  return {kAttentionOutput, after1_ ? &*after1_ : nullptr, saved.after1};
}

Block::End Block::mlp_end(const Saved& saved) const {
  return {kMlpOutput, after2_ ? &*after2_ : nullptr, saved.after2};
}

// With sequence parallelism, this is new memory for all rows; otherwise the region is left in place.
View Block::branch_memory(const Ctx& ctx, const End& end, View y) {
  if (!ctx.tp.sequence()) return end.saved.branch ? end.saved.branch : y;
  Shape inside = y.shape;
  inside[0] *= ctx.tp.size();
  return ctx.scratch.make(y.dtype, inside, "branch output");
}

Norm::Join Block::join(const Ctx& ctx, View y, View branch, ConstView x, const End& end) const {
  if (end.norm) branch = end.norm->forward(ctx, branch, end.saved);
  if (multiplier_ != 1) run(ctx.compute, ScaleBy{.x = branch, .factor = multiplier_});
  return {.sum = y, .branch = branch, .residual = x, .dropout = dropout(ctx, x, end.site)};
}

Region::Late Block::into_branch(const Ctx& ctx, ConstView d, const End& end) const {
  ConstView inner = d;
  if (const DropoutKey key = dropout(ctx, d, end.site); key.p > 0 || multiplier_ != 1) {
    const View masked = ctx.scratch.make(d.dtype, d.shape, "masked gradient");
    run(ctx.compute, Dropout{.y = masked, .x = d, .key = key});
    if (multiplier_ != 1) run(ctx.compute, ScaleBy{.x = masked, .factor = multiplier_});
    inner = masked;
  }
  if (end.norm) inner = end.norm->backward(ctx, inner, end.saved);
  return ctx.tp.leave_grad_by_piece(ctx.compute, ctx.scratch, inner);
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
