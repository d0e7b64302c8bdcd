#include "libcore/model/stage.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace megalith {

void Tape::clear() {
  arena.rewind(0);
  inputs.clear();
  blocks.clear();
  head.reset();
}

Stage::Stage(const ModelConfig& config, const Layers& layers, const TensorSplit& split, ParamTable& table,
             const RecomputePlan& recompute)
    : config_(config), layers_(layers), keep_core_(recompute.granularity != Recompute::kSelective) {
  plan_segments(recompute);
  first_unit_ = table.units();
  if (layers.embedding) {
    table.begin_unit();
    embedding_.emplace(table, split, config);
  }
  blocks_.reserve(static_cast<size_t>(layers.count));
  for (int i = 0; i < layers.count; ++i) {
    table.begin_unit();
    blocks_.emplace_back(table, split, config, layers.first + i);
  }
  if (layers.head) {
    table.begin_unit();
    head_.emplace(table, split, config);
  }
  for (const Param& param : table.all()) {
    if (witness_ == nullptr || param.global.rank == 1) witness_ = &param;
    const bool of_layer = param.global.rank > 1 && param.name.starts_with("decoder.");
    if (matrix_ == nullptr || of_layer) matrix_ = &param;
  }
}

void Stage::plan_segments(const RecomputePlan& plan) {
  size_t first = 0;
  const auto count = static_cast<size_t>(layers_.count);
  if (plan.granularity == Recompute::kFull) {
    const bool block = plan.block && plan.layers > 0;
    const size_t end = block ? std::min(static_cast<size_t>(plan.layers), count) : count;
    const size_t size = block ? 1 : static_cast<size_t>(std::max(1, plan.layers));
    for (; first < end; first += size) segments_.push_back({first, std::min(end, first + size), true});
    first = end;
  }
  if (first < count) segments_.push_back({first, count, false});
}

View Stage::forward(const Ctx& outer, const Microbatch& microbatch, ConstView in, Tape& tape) const {
  Ctx ctx = outer;
  ctx.key.samples = microbatch.samples;
  ctx.starts = microbatch.starts;
  ctx.position_starts = microbatch.position_starts;
  tape.inputs.assign(blocks_.size(), {});
  tape.blocks.assign(blocks_.size(), {});
  const Shape& tokens = microbatch.tokens.shape;
  View y;
  ConstView x = in;
  if (embedding_) {
    const Shape shape{ctx.tp.rows_outside(tokens[0]), tokens[1], config_.hidden};
    x = y = tape.arena.make(dtype(), shape, "embedding output");
    begin(ctx, first_unit_);
    embedding_->forward(ctx, y, microbatch.tokens);
  }
  if (ctx.training)
    for (const Segment& segment : segments_)
      x = y = segment.again ? pass_through(ctx, segment, x, tape)
                            : keep(ctx, segment, x, tape, {tape.arena, keep_core_});
  else if (!blocks_.empty())
    x = y = pass_through(ctx, {0, blocks_.size(), true}, x, tape);
  if (!head_) return y;

  const View loss = tape.arena.make(DType::kF32, tokens, "loss");
  tape.head = head_->make_saved(ctx, tape.arena, x);
  const float scale = microbatch.grad_scale * ctx.loss_scale;
  if (ctx.grads) ctx.grads->head_begins(ctx.compute);
  begin(ctx, unit_of(blocks_.size()));
  head_->forward(
      ctx, loss,
      {microbatch.labels, microbatch.loss_mask, {scale, microbatch.grad_scale_at}, microbatch.gaps},
      *tape.head);
  return loss;
}

View Stage::keep(const Ctx& ctx, const Segment& segment, ConstView in, Tape& tape,
                 const Keeping& where) const {
  View y;
  ConstView x = in;
  const auto make_saved = [&](size_t i) {
    tape.blocks[i] = blocks_[i].make_saved(ctx, where.arena, in, where.attention_core);
  };
  make_saved(segment.begin);
  bool normed = false;
  for (size_t i = segment.begin; i < segment.end; ++i) {
    tape.inputs[i] = x;
    y = where.arena.make(x.dtype, x.shape, "block output");
    const bool has_next = i + 1 < segment.end;
    if (has_next) make_saved(i + 1);
    const bool norms_next = has_next && tape.blocks[i + 1].n1;
    begin(ctx, unit_of(i));
    blocks_[i].forward(ctx, y, x, tape.blocks[i],
                       {.normed = normed,
                        .next = norms_next ? &blocks_[i + 1] : nullptr,
                        .next_saved = norms_next ? &tape.blocks[i + 1] : nullptr,
                        .next_unit = unit_of(i + 1)});
    normed = norms_next;
    x = y;
  }
  return y;
}

View Stage::pass_through(const Ctx& ctx, const Segment& segment, ConstView in, Tape& tape) const {
  tape.inputs[segment.begin] = in;
  const View out = tape.arena.make(in.dtype, in.shape, "segment output");
  const ArenaScope scope(ctx.scratch);
  const std::array<View, 2> between{ctx.scratch.make(in.dtype, in.shape, "between blocks"),
                                    ctx.scratch.make(in.dtype, in.shape, "between blocks")};
  ConstView x = in;
  for (size_t i = segment.begin; i < segment.end; ++i) {
    const ArenaScope block_scope(ctx.scratch);
    const View y = i + 1 == segment.end ? out : between[i % 2];
    begin(ctx, unit_of(i));
    blocks_[i].forward(ctx, y, x, blocks_[i].make_saved(ctx, ctx.scratch, x, true));
    x = y;
  }
  return out;
}

View Stage::backward(const Ctx& outer, const Microbatch& microbatch, View dout, Tape& tape) const {
  Ctx ctx = outer;
  ctx.key.samples = microbatch.samples;
  ctx.starts = microbatch.starts;
  ctx.position_starts = microbatch.position_starts;
  View d = dout;
  if (head_) {
    d = tape.head->dnormed;
    head_->backward(ctx, d, *tape.head);
    done(ctx, unit_of(blocks_.size()));
  }
  for (size_t i = segments_.size(); i-- > 0;) {
    const ArenaScope scope(ctx.scratch);
    if (segments_[i].again)
      keep(ctx, segments_[i], tape.inputs[segments_[i].begin], tape, {ctx.scratch, true});
    for (size_t block = segments_[i].end; block-- > segments_[i].begin;) {
      blocks_[block].backward(ctx, d, tape.inputs[block], tape.blocks[block]);
      done(ctx, unit_of(block));
    }
  }
  if (!embedding_) return d;
  embedding_->backward(ctx, d, microbatch.tokens);
  done(ctx, first_unit_);
  return {};
}

void Stage::begin(const Ctx& ctx, int unit) {
  if (ctx.params) ctx.params->unit_begins(ctx.compute, unit);
}

void Stage::done(const Ctx& ctx, int unit) {
  if (ctx.grads) ctx.grads->unit_done(ctx.compute, unit);
}

View Stage::logits(const Ctx& ctx, ConstView tokens, int64_t rows, KvCache& cache) const {
  KvCache* const one = &cache;
  return logits(ctx, tokens, rows, Reading{{&one, 1}, tokens.shape[0]});
}

View Stage::next_logits(const Ctx& ctx, ConstView tokens, std::span<KvCache* const> caches) const {
  if (tokens.shape[0] != 1 || tokens.shape[1] != static_cast<int64_t>(caches.size()))
    fail(ErrorKind::kInternal, "tokens ", tokens.shape, " for ", caches.size(), " sequences");
  return logits(ctx, tokens, 1, Reading{caches, 1});
}

View Stage::last_logits(const Ctx& ctx, ConstView tokens, std::span<KvCache* const> caches,
                        std::span<const int64_t> rows) const {
  if (!embedding_ || !head_) fail(ErrorKind::kInternal, "logits of a part of a model");
  const auto texts = static_cast<int64_t>(caches.size());
  std::vector<Branch> branches;
  int64_t t = 0;
  for (size_t i = 0; i < std::min(caches.size(), rows.size()); ++i) {
    branches.push_back({.past = caches[i]->past(), .rows = rows[i], .cache = i});
    check_end(caches[i]->past() + rows[i]);
    caches[i]->advance(rows[i]);
    t += rows[i];
  }
  if (caches.size() != rows.size() || tokens.shape[0] != t || tokens.shape[1] != 1)
    fail(ErrorKind::kInternal, "tokens ", tokens.shape, " for ", texts, " texts of ", t, " tokens");
  const View out = ctx.scratch.make(DType::kF32, {1, texts, head_->vocabulary()}, "logits");
  const ArenaScope scope(ctx.scratch);
  const View last = ctx.scratch.make(dtype(), {1, texts, config_.hidden}, "last rows");
  const View x = read(ctx, tokens, Reading{caches, t, branches});
  const View each = last.as_shape({texts, config_.hidden});
  int64_t end = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    end += rows[i];
    const auto at = static_cast<int64_t>(i);
    ctx.compute.copy(each.rows(at, at + 1), x.rows(end - 1, end));
  }
  head_->logits(ctx, out, last);
  return out;
}

View Stage::read_branches(const Ctx& ctx, ConstView tokens, KvCache& cache,
                          std::span<const Branch> branches) const {
  if (!embedding_) fail(ErrorKind::kInternal, "branches of a part of a model");
  int64_t rows = 0;
  for (const Branch& branch : branches) {
    const int64_t end = branch.past + branch.rows;
    check_end(end);
    if (end > cache.capacity() || branch.past < 0 || branch.rows < 1)
      fail(ErrorKind::kInternal, "a branch of ", branch.rows, " rows after ", branch.past,
           ", in a key/value cache of ", cache.capacity());
    rows += branch.rows;
  }
  if (rows != tokens.shape[0] || tokens.shape[1] != 1 || cache.batch() != 1)
    fail(ErrorKind::kInternal, "tokens ", tokens.shape, " for branches of ", rows, " rows");
  KvCache* const one = &cache;
  return read(ctx, tokens, Reading{{&one, 1}, rows, branches});
}

void Stage::scores(const Ctx& ctx, const Head::Scores& scores, ConstView x) const {
  if (!head_) fail(ErrorKind::kInternal, "scores of a part of a model");
  head_->scores(ctx, scores, x);
}

View Stage::logits(const Ctx& ctx, ConstView tokens, int64_t rows, const Reading& reading) const {
  if (!embedding_ || !head_) fail(ErrorKind::kInternal, "logits of a part of a model");
  const int64_t t = tokens.shape[0], b = tokens.shape[1];
  for (KvCache* const cache : reading.caches) {
    check_end(cache->past() + t);
    cache->advance(t);
  }
  const View out = ctx.scratch.make(DType::kF32, {rows, b, head_->vocabulary()}, "logits");
  const ArenaScope scope(ctx.scratch);
  head_->logits(ctx, out, read(ctx, tokens, reading).rows(t - rows, t));
  return out;
}

View Stage::read(const Ctx& ctx, ConstView tokens, const Reading& reading) const {
  const Shape shape{tokens.shape[0], tokens.shape[1], config_.hidden};
  const View out = ctx.scratch.make(dtype(), shape, "block output");
  const ArenaScope scope(ctx.scratch);
  View x = ctx.scratch.make(dtype(), shape, "block input"), y = out;
  if (blocks_.size() % 2 == 0) std::swap(x, y);  // so that the last block writes to `out`
  reading.each([&](const KvCache&, int64_t past, int64_t first, int64_t last) {
    embedding_->at(ctx, reading.part(x, first, last), reading.part(tokens, first, last), past);
  });
  for (size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].cached(ctx, y, x, reading, i);
    std::swap(x, y);
  }
  return out;
}

void Stage::check_end(int64_t position) const {
  if (config_.position != PositionEmbedding::kNone && position > config_.max_positions)
    fail(ErrorKind::kInternal, "position ", position, " of a model with ", config_.max_positions);
}

}  // namespace megalith
