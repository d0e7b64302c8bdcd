#include "libcore/model/attention.h"

#include <cmath>
#include <utility>
#include <vector>

#include "libcore/model/rotary/rotary.h"

namespace megalith {
namespace {

std::string name_prefix(int layer) {
  return concat("decoder.layers.", layer, ".self_attention.");
}

/// cos or sin of position * frequency of a pair, times the magnitude of the rotation: [positions, pairs].
/// Frequency and angle are rounded to fp32 as in Megatron and Hugging Face, with which models are trained.
std::vector<float> angles(const ModelConfig& config, double (*function)(double)) {
  const Rotation rotation = rotation_of(config);
  std::vector<float> table;
  table.reserve(static_cast<size_t>(config.max_positions) * rotation.frequencies.size());
  for (int position = 0; position < config.max_positions; ++position)
    for (const float frequency : rotation.frequencies)
      table.push_back(static_cast<float>(function(static_cast<float>(position) * frequency)) *
                      rotation.magnitude);
  return table;
}

const Constant& angle_table(ParamTable& table, const ModelConfig& config, const char* name,
                            double (*function)(double)) {
  return table.constant(name, {config.max_positions, config.rotary_channels() / 2},
                        [config, function] { return angles(config, function); });
}

LinearShape qkv_shape(const ModelConfig& config, int layer) {
  const int64_t groups = config.kv_heads(), queries = config.heads / groups;
  return {.name = name_prefix(layer) + "linear_qkv",
          .weight = {groups, queries + 2, config.kv_channels, config.hidden},
          .shard_axis = 0,
          .init_std = config.init_std,
          .bias = config.has_qkv_bias(),
          .layer = layer,
          .site = 4};
}

LinearShape proj_shape(const ModelConfig& config, int layer) {
  return {.name = name_prefix(layer) + "linear_proj",
          .weight = {config.hidden, int64_t{config.heads} * config.kv_channels},
          .shard_axis = 1,
          .init_std = config.init_std / std::sqrt(2.0 * config.layers),
          .bias = config.linear_bias,
          .layer = layer,
          .site = 7};
}

std::optional<HeadNorms> make_norms(ParamTable& table, const TensorSplit& split, const ModelConfig& config,
                                    int layer) {
  if (!config.qk_layernorm) return {};
  return std::optional<HeadNorms>(std::in_place, table, split, config, name_prefix(layer));
}

}  // namespace

SelfAttention::SelfAttention(ParamTable& table, const TensorSplit& split, const ModelConfig& config,
                             int layer)
    : layer_(layer),
      groups_(config.kv_heads() / split.size),
      queries_(config.heads / config.kv_heads()),
      head_(config.kv_channels),
      first_head_(split.rank * groups_ * queries_),
      scale_(static_cast<float>(config.attention_scale())),
      dropout_(static_cast<float>(config.attention_dropout)),
      window_(config.window_of(layer)),
      qkv_(table, split, qkv_shape(config, layer)),
      norms_(make_norms(table, split, config, layer)),
      proj_(table, split, proj_shape(config, layer)) {
  if (table.plan().prefix > 0) {
    Param prefix{.name = name_prefix(layer) + "prefix",
                 .global = {2, config.kv_heads(), table.plan().prefix, config.kv_channels}};
    prefix.init = Init::normal(1);  // peft's initial values
    prefix.adapter = true;
    prefix_ = &table.add(cut(std::move(prefix), 1, split));
  }
  if (!config.rotates(layer)) return;
  cos_ = &angle_table(table, config, "rotary.cos", std::cos);
  sin_ = &angle_table(table, config, "rotary.sin", std::sin);
}

SelfAttention::Saved SelfAttention::make_saved(Arena& arena, int64_t s, int64_t b, DType dtype,
                                               bool core) const {
  Saved saved;
  saved.qkv = arena.make(dtype, {s, b, groups_, queries_ + 2, head_}, "qkv");
  if (norms_) saved.norms = norms_->make_kept(arena, saved.qkv);
  if (!core) return saved;
  saved.out = arena.make(dtype, {s, b, groups_ * queries_, head_}, "attention output");
  saved.lse = arena.make(DType::kF32, {b, groups_ * queries_, s}, "attention lse");
  return saved;
}

View SelfAttention::forward(const Ctx& ctx, View y, ConstView x, const Saved& saved) const {
  const ArenaScope scope(ctx.scratch);
  qkv_.entering(ctx, saved.qkv, x);
  if (!norms_) rotate(ctx, saved.qkv, positions(ctx, saved.qkv.shape[0]), false);
  const View qkv = ready(ctx, saved);
  const View out = saved.out ? saved.out : make_out(ctx.scratch, qkv);
  core(ctx, out, saved.lse, qkv, gather(ctx, qkv));
  return proj_.leaving(ctx, y, out);
}

View SelfAttention::ready(const Ctx& ctx, const Saved& saved, const HeadNorms::Saved* again) const {
  if (!norms_) return saved.qkv;
  const View qkv = ctx.scratch.make(saved.qkv.dtype, saved.qkv.shape, "normed qkv");
  if (again)
    norms_->again(ctx, qkv, saved.qkv, *again);
  else
    norms_->forward(ctx, qkv, saved.qkv, saved.norms);
  rotate(ctx, qkv, positions(ctx, qkv.shape[0]), false);
  return qkv;
}

View SelfAttention::backward(const Ctx& ctx, View dx, const Region::Late& dy, const Region::Late& x,
                             const Saved& saved) const {
  const ArenaScope scope(ctx.scratch);
  const HeadNorms::Saved norms =
      norms_ ? norms_->make_saved(ctx.scratch, saved.qkv, saved.norms) : HeadNorms::Saved{};
  Saved full = saved;
  full.qkv = ready(ctx, saved, &norms);
  const View kv = gather(ctx, full.qkv);
  if (!full.out) {
    full.out = make_out(ctx.scratch, saved.qkv);
    full.lse = ctx.scratch.make(DType::kF32, {saved.qkv.shape[1], groups_ * queries_, saved.qkv.shape[0]},
                                "attention lse");
    core(ctx, full.out, full.lse, full.qkv, kv);
  }
  const View dout = make_out(ctx.scratch, saved.qkv);
  proj_.backward_entering(ctx, dout, dy, full.out);
  const View dqkv = ctx.scratch.make(saved.qkv.dtype, saved.qkv.shape, "qkv gradient");
  core_grad(ctx, dqkv, dout, full, kv);
  rotate(ctx, dqkv, positions(ctx, dqkv.shape[0]), true);
  if (norms_ && norms_->joint()) x.wait(ctx.compute);  // before the ranks add up sums
  if (norms_) norms_->backward(ctx, dqkv, saved.qkv, norms);
  x.wait(ctx.compute);
  return qkv_.backward_leaving(ctx, dx, dqkv, x.rows);
}

View SelfAttention::cached(const Ctx& ctx, View y, ConstView x, const Reading& reading,
                           size_t local_layer) const {
  const ArenaScope scope(ctx.scratch);
  const Saved saved = make_saved(ctx.scratch, x.shape[0], x.shape[1], x.dtype, false);
  const View out = make_out(ctx.scratch, saved.qkv);
  qkv_.forward(ctx, saved.qkv, x);
  if (norms_) norms_->forward(ctx, saved.qkv, saved.qkv, {});
  reading.each([&](const KvCache& cache, int64_t past, int64_t first, int64_t last) {
    const View qkv = reading.part(saved.qkv, first, last);
    rotate(ctx, qkv, {.first = past}, false);
    run(ctx.compute, CachedAttention{.out = reading.part(out, first, last),
                                     .k_cache = cache.layer(local_layer).k,
                                     .v_cache = cache.layer(local_layer).v,
                                     .qkv = qkv,
                                     .past = past,
                                     .scale = scale_,
                                     .window = window_});
  });
  return proj_.leaving(ctx, y, out);
}

View SelfAttention::make_out(Arena& arena, ConstView qkv) const {
  return arena.make(qkv.dtype, {qkv.shape[0], qkv.shape[1], groups_ * queries_, head_}, "attention output");
}

void SelfAttention::rotate(const Ctx& ctx, View qkv, const RowPositions& rows, bool inverse) const {
  if (!cos_) return;
  run(ctx.compute, Rope{.qkv = qkv,
                        .cos = cos_->view,
                        .sin = sin_->view,
                        .rows = rows,
                        .inverse = inverse,
                        .starts = ctx.position_starts});
}

RowPositions SelfAttention::positions(const Ctx& ctx, int64_t s) const {
  return prefix_ ? RowPositions{.first = prefix_positions()} : ctx.cp.rows(s);
}

View SelfAttention::make_whole(const Ctx& ctx, ConstView qkv) const {
  const Shape& s = qkv.shape;
  return ctx.scratch.make(qkv.dtype, {prefix_positions() + s[0] * ctx.cp.size(), s[1], groups_, 2, head_},
                          "keys and values");
}

View SelfAttention::gather(const Ctx& ctx, ConstView qkv) const {
  if (ctx.cp.size() == 1 && !prefix_) return {};
  const View whole = make_whole(ctx, qkv);
  const int64_t s = qkv.shape[0];
  if (prefix_) {
    const int64_t p = prefix_positions();
    run(ctx.compute, PutPrefix{.kv = whole.rows(0, p), .prefix = prefix_->value});
    run(ctx.compute, CopyKeyValues{.to = whole.rows(p, p + s), .from = qkv});
    return whole;
  }
  ctx.cp.rows(s).each_span(s, [&](int64_t begin, int64_t end, int64_t position) {
    run(ctx.compute,
        CopyKeyValues{.to = whole.rows(position, position + end - begin), .from = qkv.rows(begin, end)});
  });
  ctx.cp.gather(ctx.compute, whole);
  return whole;
}

void SelfAttention::core(const Ctx& ctx, View out, View lse, ConstView qkv, ConstView kv) const {
  const int64_t s = qkv.shape[0];
  run(ctx.compute, Attention{.out = out,
                             .qkv = qkv,
                             .scale = scale_,
                             .lse = lse,
                             .dropout = dropout(ctx, s),
                             .kv = kv,
                             .rows = positions(ctx, s),
                             .starts = ctx.starts,
                             .window = window((kv ? kv : qkv).shape[0])});
}

// Sums the gradients of keys and values over the context group, since the queries of all its ranks contribute
// to these gradients.
void SelfAttention::core_grad(const Ctx& ctx, View dqkv, ConstView dout, const Saved& saved,
                              ConstView kv) const {
  const int64_t s = dqkv.shape[0];
  const RowPositions rows = positions(ctx, s);
  const View dkv = kv ? make_whole(ctx, saved.qkv) : View{};
  run(ctx.compute, AttentionGrad{.dqkv = dqkv,
                                 .dout = dout,
                                 .out = saved.out,
                                 .qkv = saved.qkv,
                                 .lse = saved.lse,
                                 .scale = scale_,
                                 .dropout = dropout(ctx, s),
                                 .kv = kv,
                                 .dkv = dkv,
                                 .rows = rows,
                                 .starts = ctx.starts,
                                 .window = window((kv ? kv : ConstView(saved.qkv)).shape[0])});
  if (!dkv) return;
  if (prefix_ && prefix_->grad)
    run(ctx.compute, PrefixGrad{.dprefix = prefix_->grad, .dkv = dkv.rows(0, prefix_positions())});
  if (ctx.cp.size() > 1) ctx.cp.sum(ctx.compute, dkv);
  rows.each_span(s, [&](int64_t begin, int64_t end, int64_t position) {
    run(ctx.compute,
        CopyKeyValues{.to = dqkv.rows(begin, end), .from = dkv.rows(position, position + end - begin)});
  });
}

DropoutKey SelfAttention::dropout(const Ctx& ctx, int64_t s) const {
  return {.p = ctx.training ? dropout_ : 0,
          .seed = ctx.key.seed,
          .layer = static_cast<uint32_t>(layer_ + 1),
          .site = 1,
          .samples = ctx.key.samples,
          .rows = positions(ctx, s),
          .first_head = first_head_};
}

}  // namespace megalith
