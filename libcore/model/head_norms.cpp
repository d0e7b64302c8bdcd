#include "libcore/model/head_norms.h"

namespace megalith {
namespace {

/// The heads of the queries and of the keys among the rows of a packed QKV.
struct HeadRows {
  RowPart queries, keys;
  explicit HeadRows(ConstView qkv) : queries(), keys() {
    const int64_t heads = qkv.shape[3];
    queries = {.first = 0, .count = heads - 2, .of = heads};
    keys = {.first = heads - 2, .count = 1, .of = heads};
  }
};

}  // namespace

HeadNorms::HeadNorms(ParamTable& table, const TensorSplit& split, const ModelConfig& config,
                     const std::string& prefix)
    : query_(table, config, {prefix + "q_layernorm", config.kv_channels, split.size > 1}),
      key_(table, config, {prefix + "k_layernorm", config.kv_channels, split.size > 1}) {}

HeadNorms::Saved HeadNorms::make_saved(Arena& arena, ConstView qkv) const {
  const int64_t heads = qkv.shape.rows();
  const HeadRows rows(qkv);
  return {query_.make_saved(arena, rows_taken(rows.queries, heads)),
          key_.make_saved(arena, rows_taken(rows.keys, heads))};
}

void HeadNorms::forward(const Ctx& ctx, View normed, ConstView qkv, const Saved& saved) const {
  const HeadRows rows(qkv);
  if (normed.data != qkv.data) run(ctx.compute, CopyKeyValues{.to = normed, .from = qkv});
  query_.forward_part(ctx, normed, qkv, saved.query, rows.queries);
  key_.forward_part(ctx, normed, qkv, saved.key, rows.keys);
}

void HeadNorms::backward(const Ctx& ctx, View d, ConstView qkv, const Saved& saved) const {
  const HeadRows rows(qkv);
  query_.backward(ctx, {.dx = d, .dy = d, .x = qkv, .part = rows.queries}, saved.query);
  key_.backward(ctx, {.dx = d, .dy = d, .x = qkv, .part = rows.keys}, saved.key);
}

}  // namespace megalith
