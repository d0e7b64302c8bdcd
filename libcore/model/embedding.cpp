#include "libcore/model/embedding.h"

#include <algorithm>
#include <utility>

#include "libcore/base/text.h"
#include "libcore/config/vocab_padding.h"

namespace megalith {

int64_t vocabulary_rows(const ModelConfig& config, const TensorSplit& split) {
  const int64_t share = split.size == 1 ? config.vocab_size : config.padded_vocab(split.size) / split.size;
  return padded_vocab_size(share, split.vocabulary.padded ? VocabularyForm::kRows : 1);
}

Param& declare_vocabulary(ParamTable& table, const TensorSplit& split, const ModelConfig& config,
                          const std::string& name) {
  if (config.vocab_size <= 0) fail(ErrorKind::kInternal, quote(name), ": the vocabulary's size is not known");
  Param param{.name = name, .global = {config.vocab_size, config.hidden}};
  param.init = Init::normal(config.init_std);
  return table.add(cut(std::move(param), 0, split, vocabulary_rows(config, split)));
}

int64_t true_rows(const Param& param) {
  return std::clamp<int64_t>(param.global[0] - param.offset, 0, param.local[0]);
}

TokenEmbedding::TokenEmbedding(ParamTable& table, const TensorSplit& split, const ModelConfig& config)
    : dropout_(static_cast<float>(config.hidden_dropout)),
      multiplier_(static_cast<float>(config.embedding_multiplier)),
      words_(&declare_vocabulary(table, split, config, kWordEmbeddings)),
      first_position_(table.plan().prefix) {
  if (config.position != PositionEmbedding::kLearned) return;
  Param positions{.name = "embedding.position_embeddings.weight",
                  .global = {config.max_positions, config.hidden}};
  positions.init = Init::normal(config.init_std);
  positions_ = &table.add(std::move(positions));
}

void TokenEmbedding::forward(const Ctx& ctx, View y, ConstView tokens) const {
  look_up(ctx, y, tokens, rows(ctx, tokens.shape[0]));
  if (const DropoutKey key = dropout(ctx, y); key.p > 0)
    run(ctx.compute, Dropout{.y = y, .x = y, .key = key});
}

void TokenEmbedding::backward(const Ctx& ctx, ConstView dy, ConstView tokens) const {
  if (!words_->trainable) return;
  const ArenaScope scope(ctx.scratch);
  ConstView d = dy;
  if (const DropoutKey key = dropout(ctx, dy); key.p > 0 || multiplier_ != 1) {
    const View masked = ctx.scratch.make(dy.dtype, dy.shape, "masked gradient");
    run(ctx.compute, Dropout{.y = masked, .x = dy, .key = key});
    if (multiplier_ != 1) run(ctx.compute, ScaleBy{.x = masked, .factor = multiplier_});
    d = masked;
  }
  d = ctx.tp.leave_grad(ctx.compute, ctx.scratch, d);
  if (words_->grad)
    run(ctx.compute, EmbeddingGrad{.dtable = words_->grad,
                                   .dpositions = positions_ ? positions_->grad : View{},
                                   .dy = d,
                                   .ids = tokens,
                                   .rows = rows(ctx, tokens.shape[0]),
                                   .first_id = static_cast<int32_t>(words_->offset),
                                   .starts = ctx.position_starts});
}

void TokenEmbedding::at(const Ctx& ctx, View y, ConstView tokens, int64_t first_position) const {
  look_up(ctx, y, tokens, {.first = first_position});
}

void TokenEmbedding::look_up(const Ctx& ctx, View y, ConstView tokens, const RowPositions& rows) const {
  const ArenaScope scope(ctx.scratch);
  const Shape inside{tokens.shape[0], tokens.shape[1], words_->global[1]};
  const View whole = ctx.tp.sequence() ? ctx.scratch.make(y.dtype, inside, "embedding") : y;
  // Only one rank adds the positions, since leaving the region sums over the ranks.
  const bool with_positions = positions_ && ctx.tp.rank() == 0;
  const View out = ctx.tp.leave(ctx.compute, whole, [&](int64_t begin, int64_t end) {
    run(ctx.compute,
        Embedding{.y = whole.rows(begin, end),
                  .ids = tokens.rows(begin, end),
                  .table = words_->value,
                  .positions = with_positions ? positions_->value : ConstView{},
                  .rows = rows.from(begin),
                  .first_id = static_cast<int32_t>(words_->offset),
                  .starts = ctx.position_starts ? ctx.position_starts.rows(begin, end) : ConstView{}});
  });
  if (out.data != y.data) ctx.compute.copy(y, out);
  if (multiplier_ != 1) run(ctx.compute, ScaleBy{.x = y, .factor = multiplier_});
}

RowPositions TokenEmbedding::rows(const Ctx& ctx, int64_t s) const {
  return first_position_ > 0 ? RowPositions{.first = first_position_} : ctx.cp.rows(s);
}

DropoutKey TokenEmbedding::dropout(const Ctx& ctx, ConstView y) const {
  return {.p = ctx.training ? dropout_ : 0,
          .seed = ctx.key.seed,
          .layer = 0,
          .site = 0,
          .samples = ctx.key.samples,
          .rows = ctx.outside_rows(y.shape[0])};
}

}  // namespace megalith
