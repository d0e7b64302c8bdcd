#include "libcore/ops/cuda/backend/attention_ops.h"

#include "libcore/base/error.h"
#include "libcore/ops/backend/cuda_workspaces.h"
#include "libcore/ops/backend/kernel_arguments.h"
#include "libcore/ops/cuda/kernels.h"
#include "libcore/ops/cuda/op_fields.h"

namespace megalith::cuda {
namespace {

AttentionMask attention_mask(const DropoutKey& key) {
  return {mask_key(key), samples_of(key), spans_of(key.rows), key.first_head};
}

/// The layout of a packed QKV [s, b, groups, r + 2, head]: in each group, the query heads come first, then
/// the key and the value head. A tensor of keys and values alone has r = 0.
struct Packed {
  int64_t rows, batch, groups, r, head;
  explicit Packed(const Shape& s) : rows(s[0]), batch(s[1]), groups(s[2]), r(s[3] - 2), head(s[4]) {}
  HeadStrides strides() const {
    const int64_t group = (r + 2) * head, sequence = groups * group;
    return {batch * sequence, sequence, group};
  }
  /// The offsets of the key and the value head of group 0.
  int64_t k() const { return r * head; }
  int64_t v() const { return (r + 1) * head; }
};

/// The part of the shape that all ops have: queries of a packed QKV over `keys` keys with these strides.
AttentionShape shape_of(const char* op, const Packed& qkv, int64_t keys, const HeadStrides& kv) {
  if (qkv.head > kWidestHead)
    fail(ErrorKind::kUsage, "cuda: ", op, " takes heads of up to ", kWidestHead, " columns, not ", qkv.head,
         "; raise --num-attention-heads or give --device cpu");
  return {.batch = qkv.batch,
          .groups = qkv.groups,
          .r = qkv.r,
          .queries = qkv.rows,
          .keys = keys,
          .head = qkv.head,
          .q = qkv.strides(),
          .kv = kv,
          .rows = spans_of({}),
          .starts = nullptr,
          .window = 0};
}

/// The shape of Attention and of its gradient: the keys and values are in `kv`, or in qkv if that is empty.
AttentionShape attention_shape(const auto& op) {
  const Packed kv(op.kv ? op.kv.shape : op.qkv.shape);
  AttentionShape shape = shape_of(op.kName, Packed(op.qkv.shape), kv.rows, kv.strides());
  shape.rows = spans_of(op.rows);
  shape.starts = op.starts.template as<int32_t>();
  shape.window = op.window;
  return shape;
}

PrefixArgs prefix_args(const Shape& kv, void* heads, void* prefix) {
  return {.kv = heads, .prefix = prefix, .positions = kv[0], .batch = kv[1], .groups = kv[2], .head = kv[4]};
}

}  // namespace

void run_on(Queue& queue, const Rope& op) {
  const Packed heads(op.qkv.shape);
  launch_rope(queue.stream(), storage_of(op.qkv.dtype),
              {.qkv = op.qkv.data,
               .cos = op.cos.as<float>(),
               .sin = op.sin.as<float>(),
               .sin_sign = op.inverse ? -1.0f : 1.0f,
               .positions = spans_of(op.rows),
               .starts = op.starts.as<int32_t>(),
               .rows = heads.rows,
               .batch = heads.batch,
               .sequence_heads = heads.groups * (heads.r + 2),
               .group_heads = heads.r + 2,
               .head = heads.head,
               .half = op.cos.shape[1]});
}

void run_on(Queue& queue, const Attention& op) {
  const ConstView& kv = op.kv ? op.kv : op.qkv;
  const Packed heads(kv.shape);
  const Storage storage = storage_of(op.qkv.dtype);
  launch_attention(queue.stream(), storage,
                   {.out = op.out.data,
                    .q = op.qkv.data,
                    .k = at(kv, heads.k()),
                    .v = at(kv, heads.v()),
                    .kv_storage = storage,
                    .lse = op.lse.as<float>(),
                    .shape = attention_shape(op),
                    .scale = op.scale,
                    .mask = attention_mask(op.dropout)});
}

void run_on(Queue& queue, const AttentionGrad& op) {
  const ConstView& kv = op.kv ? op.kv : op.qkv;
  const View& dkv = op.kv ? op.dkv : op.dqkv;
  const Packed heads(kv.shape);
  launch_attention_grad(queue.stream(), storage_of(op.qkv.dtype),
                        {.dq = op.dqkv.data,
                         .dk = at(dkv, heads.k()),
                         .dv = at(dkv, heads.v()),
                         .q = op.qkv.data,
                         .k = at(kv, heads.k()),
                         .v = at(kv, heads.v()),
                         .out = op.out.data,
                         .dout = op.dout.data,
                         .lse = op.lse.as<float>(),
                         .delta = static_cast<float*>(queue.workspace(op.lse.bytes())),
                         .shape = attention_shape(op),
                         .scale = op.scale,
                         .mask = attention_mask(op.dropout)});
}

void run_on(Queue& queue, const CopyKeyValues& op) {
  const Packed to(op.to.shape), from(op.from.shape);
  launch_copy_lines(queue.stream(),
                    {.to = at(op.to, to.k()),
                     .from = at(op.from, from.k()),
                     .to_stride = static_cast<int64_t>(size_of(op.to.dtype)) * to.strides().group,
                     .from_stride = static_cast<int64_t>(size_of(op.to.dtype)) * from.strides().group,
                     .lines = to.rows * to.batch * to.groups,
                     .bytes = static_cast<int64_t>(size_of(op.to.dtype)) * 2 * to.head});
}

void run_on(Queue& queue, const CachedAttention& op) {
  const Packed heads(op.qkv.shape);
  const int64_t capacity = op.k_cache.shape[2], keys = op.past + heads.rows;
  const Storage storage = storage_of(op.qkv.dtype), cache = storage_of(op.k_cache.dtype);
  AttentionShape shape = shape_of(op.kName, heads, keys,
                                  {heads.head, heads.groups * capacity * heads.head, capacity * heads.head});
  shape.rows = spans_of({.first = op.past});
  shape.window = op.window;
  launch_cache_append(queue.stream(), storage,
                      {.k_cache = op.k_cache.data,
                       .v_cache = op.v_cache.data,
                       .cache_storage = cache,
                       .k = at(op.qkv, heads.k()),
                       .v = at(op.qkv, heads.v()),
                       .shape = shape});
  const AttentionArgs args{.out = op.out.data,
                           .q = op.qkv.data,
                           .k = op.k_cache.data,
                           .v = op.v_cache.data,
                           .kv_storage = cache,
                           .lse = nullptr,
                           .shape = shape,
                           .scale = op.scale,
                           .mask = attention_mask({})};
  if (decodes(op))
    launch_decode(queue.stream(), storage, args, decode_cut(op), queue.workspace(workspace_of(op)));
  else
    launch_attention(queue.stream(), storage, args);
}

void run_on(Queue& queue, const PutPrefix& op) {
  // The kernel only reads the prefix.
  launch_put_prefix(queue.stream(), storage_of(op.kv.dtype),
                    prefix_args(op.kv.shape, op.kv.data, const_cast<void*>(op.prefix.data)));
}

void run_on(Queue& queue, const PrefixGrad& op) {
  launch_prefix_grad(queue.stream(), storage_of(op.dkv.dtype),
                     prefix_args(op.dkv.shape, const_cast<void*>(op.dkv.data), op.dprefix.data));
}

}  // namespace megalith::cuda
