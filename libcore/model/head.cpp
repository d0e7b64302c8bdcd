#include "libcore/model/head.h"

#include <algorithm>

#include "libcore/model/embedding.h"
#include "libcore/tensor/span_log.h"

namespace megalith {

int64_t logits_block_rows(int64_t rows, int64_t row_bytes, int64_t most_bytes) {
  const int64_t most_rows = std::clamp<int64_t>(most_bytes / row_bytes, 1, rows),
                blocks = (rows + most_rows - 1) / most_rows;
  return (rows + blocks - 1) / blocks;
}

Head::Head(ParamTable& table, const TensorSplit& split, const ModelConfig& config)
    : norm_(table, split, config, "decoder.final_layernorm"),
      weight_(&declare_vocabulary(table, split, config, "output_layer.weight")),
      seq_length_(config.seq_length),
      logits_bytes_(split.vocabulary.logits_bytes),
      logits_factor_(static_cast<float>(1 / config.logits_scaling)) {
  if (!config.untied_head) weight_->tie = kWordEmbeddings;
}

Head::Saved Head::make_saved(const Ctx& ctx, Arena& arena, ConstView x) const {
  Saved saved{.x = x, .norm = {}, .dnormed = arena.make(x.dtype, x.shape, "head")};
  if (ctx.training) saved.norm = norm_.make_saved(arena, x.shape.rows());
  return saved;
}

void Head::forward(const Ctx& ctx, View loss, const Targets& targets, const Saved& saved) const {
  const ArenaScope scope(ctx.scratch);
  norm_.forward(ctx, saved.dnormed, saved.x, saved.norm);
  const Region::Late entry = ctx.tp.enter_by_piece(ctx.compute, ctx.scratch, saved.dnormed);
  const ConstView normed = entry.rows;
  const int64_t n = normed.shape.rows(), h = normed.shape.back();
  // If `normed` is in the tape's memory, the gradient overwrites it: the gradient of a block of rows replaces
  // these rows, which are not read again. So the tape holds only one tensor [s, b, h] for the head.
  const View inside = normed.data == saved.dnormed.data
                          ? saved.dnormed
                          : ctx.scratch.make(normed.dtype, normed.shape, "head gradient");
  const RowBlock whole{.x = normed.as_shape({n, h}),
                       .dx = inside.as_shape({n, h}),
                       .loss = loss.as_shape({n}),
                       .labels = targets.labels.as_shape({n}),
                       .mask = targets.mask ? targets.mask.as_shape({n}) : ConstView{},
                       .gaps = targets.gaps && !ctx.training ? targets.gaps.as_shape({n}) : View{}};
  Region::Exit exit(ctx.tp, inside);
  Exchanges exchanges{.entry = entry, .exit = exit, .batch = normed.shape[1], .all = whole};
  const int64_t step = block_rows(ctx, normed.shape, normed.dtype);
  for (int64_t row = 0; row < n; row += step)
    row_block(ctx, exchanges, row, std::min(n, row + step), targets.grad_scale);
  ctx.tp.join(ctx.compute, inside);
  if (ctx.tp.size() > 1) ctx.tp.tensor().all_reduce(ctx.compute, loss, Reduce::kSum);
  if (ctx.tp.size() > 1 && whole.gaps) ctx.tp.tensor().all_reduce(ctx.compute, whole.gaps, Reduce::kSum);
  if (!ctx.training) return;
  const View d = exit.finish(ctx.compute);
  if (d.data != saved.dnormed.data) ctx.compute.copy(saved.dnormed, d);
}

void Head::backward(const Ctx& ctx, View dx, const Saved& saved) const {
  norm_.backward(ctx, {.dx = dx, .dy = saved.dnormed, .x = saved.x}, saved.norm);
}

void Head::logits(const Ctx& ctx, View logits, ConstView x) const {
  const ArenaScope scope(ctx.scratch);
  const View normed = ctx.scratch.make(x.dtype, x.shape, "head");
  norm_.forward(ctx, normed, x, {});
  if (ctx.tp.size() == 1) return project(ctx, logits, normed);
  const int64_t n = x.shape.rows(), ranks = ctx.tp.size(), share = weight_->local[0];
  const View all = ctx.scratch.make(DType::kF32, {ranks * n, share}, "logits of all ranks");
  const View mine = all.rows(ctx.tp.rank() * n, (ctx.tp.rank() + 1) * n);
  project(ctx, mine, normed);
  ctx.tp.tensor().all_gather(ctx.compute, all, mine);
  const View flat = logits.as_shape({n * vocabulary()});
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t first = rank * share, ids = std::clamp<int64_t>(vocabulary() - first, 0, share);
    for (int64_t row = 0; ids > 0 && row < n; ++row) {
      const View of_row = all.rows(rank * n + row, rank * n + row + 1).as_shape({share});
      const int64_t at = row * vocabulary() + first;
      ctx.compute.copy(flat.rows(at, at + ids), of_row.rows(0, ids));
    }
  }
}

void Head::project(const Ctx& ctx, View logits, ConstView normed) const {
  const ConstView weight = weight_->value.rows(0, logits.shape.back());
  if (weight.dtype != normed.dtype)
    run(ctx.compute, Project{.y = logits, .x = normed, .w = weight, .scales = weight_->scales});
  else
    run(ctx.compute, Gemm{.c = logits, .a = normed, .b = weight, .trans_b = true});
  scale(ctx, logits);
}

void Head::scale(const Ctx& ctx, View logits) const {
  if (logits_factor_ != 1) run(ctx.compute, ScaleBy{.x = logits, .factor = logits_factor_});
}

void Head::scores(const Ctx& ctx, const Scores& scores, ConstView x) const {
  const ArenaScope scope(ctx.scratch);
  const View logits = ctx.scratch.make(DType::kF32, {x.shape.rows(), vocabulary()}, "logits");
  this->logits(ctx, logits, x);
  run(ctx.compute, SoftmaxLoss{.loss = scores.loss,
                               .logits = logits,
                               .max = scores.max,
                               .sum_exp = scores.sum_exp,
                               .targets = scores.targets,
                               .columns = vocabulary(),
                               .want_grad = false});
}

Head::RowBlock Head::RowBlock::rows(int64_t begin, int64_t end) const {
  return {.x = x.rows(begin, end),
          .dx = dx.rows(begin, end),
          .loss = loss.rows(begin, end),
          .labels = labels.rows(begin, end),
          .mask = mask ? mask.rows(begin, end) : ConstView{},
          .gaps = gaps ? gaps.rows(begin, end) : View{}};
}

int64_t Head::block_rows(const Ctx& ctx, const Shape& rows, DType dtype) const {
  const int64_t row = weight_->local[0] * static_cast<int64_t>(size_of(dtype));
  const int64_t n = std::max(rows[0], seq_length_ / ctx.cp.size()) * rows[1];
  return logits_block_rows(n, row, logits_bytes_);
}

void Head::row_block(const Ctx& ctx, Exchanges& exchanges, int64_t begin, int64_t end,
                     const GradScale& grad_scale) const {
  const ArenaScope scope(ctx.scratch);
  const RowBlock part = exchanges.all.rows(begin, end);
  const int64_t n = end - begin;
  const View logits = ctx.scratch.make(part.x.dtype, {n, weight_->local[0]}, "logits");
  const View max = ctx.scratch.make(DType::kF32, {n}, "softmax maximum");
  const View sum = ctx.scratch.make(DType::kF32, {n}, "softmax sum");
  multiply(ctx, logits, exchanges, begin);
  scale(ctx, logits);
  // The gradient of a logit is that of the product, times what scaled it.
  const SoftmaxLoss loss{.loss = part.loss,
                         .logits = logits,
                         .max = max,
                         .sum_exp = sum,
                         .targets = part.labels,
                         .columns = true_rows(*weight_),
                         .mask = part.mask,
                         .scale = grad_scale.factor * logits_factor_,
                         .scale_at = grad_scale.at,
                         .want_grad = ctx.training};
  if (ctx.tp.size() == 1) {
    run(ctx.compute, loss);
  } else {
    ctx.tp.join(ctx.compute, exchanges.entry.rows);
    share_of_loss(ctx, loss);
  }
  if (part.gaps) fill_gaps(ctx, part.gaps, loss);
  if (!ctx.training) return;
  if (weight_->grad)
    run(ctx.compute, Gemm{.c = weight_->grad, .a = logits, .b = part.x, .trans_a = true, .accumulate = true});
  unmultiply(ctx, logits, exchanges, begin);
}

/// The logits of all rows from `begin` on that have room, each as soon as its input is there.
void Head::multiply(const Ctx& ctx, View logits, const Exchanges& exchanges, int64_t begin) const {
  const int64_t end = begin + logits.shape[0];
  for (const Region::Late::Part& part : exchanges.entry.parts) {
    const int64_t first = std::max(begin, part.begin * exchanges.batch),
                  last = std::min(end, part.end * exchanges.batch);
    if (first >= last) continue;
    ctx.compute.wait(part.there);
    const StreamSpan span(ctx.compute, "logits of rows ", first, " to ", last);
    run(ctx.compute, Gemm{.c = logits.rows(first - begin, last - begin),
                          .a = exchanges.all.x.rows(first, last),
                          .b = weight_->value,
                          .trans_b = true});
  }
}

/// The gradients of the input of these rows. What is complete leaves.
void Head::unmultiply(const Ctx& ctx, ConstView logits, Exchanges& exchanges, int64_t begin) const {
  const int64_t end = begin + logits.shape[0];
  for (const RowPiece& piece : exchanges.exit.pieces()) {
    const int64_t first = std::max(begin, piece.begin * exchanges.batch),
                  last = std::min(end, piece.end * exchanges.batch);
    if (first >= last) continue;
    {
      const StreamSpan span(ctx.compute, "gradient of rows ", first, " to ", last);
      run(ctx.compute, Gemm{.c = exchanges.all.dx.rows(first, last),
                            .a = logits.rows(first - begin, last - begin),
                            .b = weight_->value});
    }
    exchanges.exit.computed(ctx.compute, last / exchanges.batch);
  }
}

void Head::share_of_loss(const Ctx& ctx, const SoftmaxLoss& whole) const {
  run(ctx.compute, whole.stats());
  reduce(ctx, whole.max, whole.sum_exp);
  CrossEntropy share = whole.cross_entropy();
  share.first_id = static_cast<int32_t>(weight_->offset);
  run(ctx.compute, share);
}

// The loss of a softmax whose sum is 1 is that difference, without rounding. The other ranks write 0.
void Head::fill_gaps(const Ctx& ctx, View gaps, const SoftmaxLoss& whole) const {
  ctx.compute.fill(whole.sum_exp, 1);
  CrossEntropy gap = whole.cross_entropy();
  gap.loss = gaps;
  gap.mask = {};
  gap.first_id = static_cast<int32_t>(weight_->offset);
  run(ctx.compute, gap);
}

void Head::reduce(const Ctx& ctx, View max, View sum_exp) const {
  const View mine = ctx.scratch.make(DType::kF32, max.shape, "this rank's maximum");
  ctx.compute.copy(mine, max);
  ctx.tp.tensor().all_reduce(ctx.compute, max, Reduce::kMax);
  run(ctx.compute, SoftmaxRescale{.sum_exp = sum_exp, .from = mine, .to = max});
  ctx.tp.tensor().all_reduce(ctx.compute, sum_exp, Reduce::kSum);
}

}  // namespace megalith
