#include "libcore/ops/cpu/attention.h"

#include <algorithm>
#include <cstring>

#include "libcore/ops/cpu/arguments.h"
#include "libcore/ops/cpu/storage.h"
#include "libcore/ops/cpu/threads.h"

namespace megalith::cpu {
namespace {

/// The heads of a packed QKV [s, b, groups, r + 2, head].
struct Heads {
  int64_t s, b, groups, r, head;
  explicit Heads(const Shape& shape)
      : s(shape[0]), b(shape[1]), groups(shape[2]), r(shape[3] - 2), head(shape[4]) {}
  int64_t qkv_stride() const { return b * groups * (r + 2) * head; }
  int64_t out_stride() const { return b * groups * r * head; }
  int64_t qkv_place(int64_t sequence, int64_t group, int64_t slot) const {
    return ((sequence * groups + group) * (r + 2) + slot) * head;
  }
  int64_t out_place(int64_t sequence, int64_t query_head) const {
    return (sequence * groups * r + query_head) * head;
  }
};

/// Where keys and values are: in `kv` if that is present (`apart`), otherwise in the packed QKV.
struct KeyValues {
  Heads heads;
  bool apart;
  KeyValues(const ConstView& qkv, const ConstView& kv)
      : heads(kv ? kv.shape : qkv.shape), apart(static_cast<bool>(kv)) {}
  int64_t k_place(int64_t sequence, int64_t group) const { return heads.qkv_place(sequence, group, heads.r); }
  int64_t v_place(int64_t sequence, int64_t group) const { return k_place(sequence, group) + heads.head; }
};

/// Calls move(offset in kv, offset in the prefix) for each head of keys and values; offsets count elements.
template <class Move>
void for_each_prefix_head(const Shape& kv, const Move& move) {
  const int64_t positions = kv[0], batch = kv[1], groups = kv[2], head = kv[4];
  for (int64_t kind = 0; kind < 2; ++kind)
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t row = 0; row < positions; ++row)
        for (int64_t sequence = 0; sequence < batch; ++sequence)
          move((((row * batch + sequence) * groups + group) * 2 + kind) * head,
               ((kind * groups + group) * positions + row) * head);
}

/// The part of `starts` [s, b] for one sequence.
DocumentStarts starts_of(const ConstView& starts, int64_t sequence) {
  if (!starts) return {};
  return {.rows = starts.as<int32_t>() + sequence, .stride = starts.shape[1]};
}

/// Fills the arguments that forward and backward kernels share, except the tensors. `head`: the query head
/// or, in the backward pass, the first query head of the group.
template <class Args, class Op>
Args args_of_head(const Op& op, const Heads& heads, const KeyValues& from, int64_t sequence, int64_t head) {
  Args args{};
  args.out_stride = heads.out_stride();
  args.q_stride = heads.qkv_stride();
  args.kv_stride = from.heads.qkv_stride();
  args.queries = heads.s;
  args.keys = from.heads.s;
  args.head = heads.head;
  args.rows = spans_of(op.rows);
  args.scale = op.scale;
  args.key = mask_key(op.dropout);
  args.mask_rows = spans_of(op.dropout.rows);
  args.sample = args.key.scale == 0 ? 0 : samples_of(op.dropout)[sequence];
  args.first_column = static_cast<uint64_t>((op.dropout.first_head + head) * args.keys);
  args.seen = {.documents = starts_of(op.starts, sequence), .window = op.window};
  return args;
}

/// The offset of a position in the cache, in elements.
int64_t cache_place(const CachedAttention& op, int64_t sequence, int64_t group, int64_t position) {
  const Shape& cache = op.k_cache.shape;
  return ((sequence * cache[1] + group) * cache[2] + position) * cache[3];
}

}  // namespace

void AttentionRunner::run(const Rope& op) const {
  const Heads heads(op.qkv.shape);
  const int64_t half = op.cos.shape[1];
  const RopeArgs args{.qkv = op.qkv.data,
                      .cos = op.cos.as<float>(),
                      .sin = op.sin.as<float>(),
                      .rows = spans_of(op.rows),
                      .sin_sign = op.inverse ? -1.0f : 1.0f,
                      .position_heads = heads.b * heads.groups * (heads.r + 2),
                      .group_heads = heads.r + 2,
                      .head = heads.head,
                      .half = half,
                      .starts = op.starts.as<int32_t>(),
                      .batch = std::max<int64_t>(1, heads.b)};
  const auto rope = kernels_.rope[storage_of(op.qkv.dtype)];
  for_each_range(heads.s, range_rows(heads.qkv_stride()),
                 [&](int64_t begin, int64_t end) { rope(args, begin, end); });
}

void AttentionRunner::run(const PutPrefix& op) const {
  const size_t bytes = static_cast<size_t>(op.kv.shape[4]) * size_of(op.kv.dtype);
  for_each_prefix_head(op.kv.shape, [&](int64_t kv, int64_t prefix) {
    std::memcpy(at(op.kv, kv), at(op.prefix, prefix), bytes);
  });
}

void AttentionRunner::run(const PrefixGrad& op) const {
  const auto add = kernels_.add[kF32][storage_of(op.dkv.dtype)];
  for_each_prefix_head(op.dkv.shape, [&](int64_t kv, int64_t prefix) {
    add(at(op.dprefix, prefix), at(op.dkv, kv), op.dkv.shape[4]);
  });
}

void AttentionRunner::run(const Attention& op) const {
  const Heads heads(op.qkv.shape);
  const int64_t query_heads = heads.groups * heads.r;
  const auto attention = kernels_.attention[storage_of(op.qkv.dtype)];
  const KeyValues from(op.qkv, op.kv);
  const ConstView& kv = from.apart ? op.kv : op.qkv;
  const size_t scratch = kernels_.attention_scratch(from.heads.s, heads.head);
  for_each_block(heads.b * query_heads, [&](int64_t block) {
    const int64_t sequence = block / query_heads, head = block % query_heads;
    const int64_t group = head / heads.r, slot = head % heads.r;
    auto args = args_of_head<AttentionArgs>(op, heads, from, sequence, head);
    args.out = at(op.out, heads.out_place(sequence, head));
    args.q = at(op.qkv, heads.qkv_place(sequence, group, slot));
    args.k = at(kv, from.k_place(sequence, group));
    args.v = at(kv, from.v_place(sequence, group));
    args.lse = op.lse ? op.lse.as<float>() + block * heads.s : nullptr;
    attention(args, thread_scratch(scratch));
  });
}

void AttentionRunner::run(const AttentionGrad& op) const {
  const Heads heads(op.qkv.shape);
  const auto grad = kernels_.attention_grad[storage_of(op.qkv.dtype)];
  const KeyValues from(op.qkv, op.kv);
  const ConstView& kv = from.apart ? op.kv : op.qkv;
  const View& dkv = from.apart ? op.dkv : op.dqkv;
  const size_t scratch = kernels_.attention_grad_scratch(heads.s, from.heads.s, heads.head);
  for_each_block(heads.b * heads.groups, [&](int64_t block) {
    const int64_t sequence = block / heads.groups, group = block % heads.groups, head = group * heads.r;
    const int64_t q = heads.qkv_place(sequence, group, 0), k = from.k_place(sequence, group);
    const int64_t v = from.v_place(sequence, group), out = heads.out_place(sequence, head);
    auto args = args_of_head<AttentionGradArgs>(op, heads, from, sequence, head);
    args.dq = at(op.dqkv, q);
    args.dk = at(dkv, k);
    args.dv = at(dkv, v);
    args.q = at(op.qkv, q);
    args.k = at(kv, k);
    args.v = at(kv, v);
    args.out = at(op.out, out);
    args.dout = at(op.dout, out);
    args.lse = op.lse.as<float>() + block * heads.r * heads.s;
    args.heads = heads.r;
    grad(args, thread_scratch(scratch));
  });
}

void AttentionRunner::run(const CopyKeyValues& op) const {
  const Heads to(op.to.shape), from(op.from.shape);
  const int64_t groups = to.s * to.b * to.groups;
  const size_t bytes = static_cast<size_t>(2 * to.head) * size_of(op.to.dtype);
  for_each_range(groups, range_rows(2 * to.head), [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group)
      std::memcpy(at(op.to, to.qkv_place(0, group, to.r)), at(op.from, from.qkv_place(0, group, from.r)),
                  bytes);
  });
}

/// Copies the keys and values of the new positions, and converts them to the cache's dtype.
void AttentionRunner::append_to_cache(const CachedAttention& op, int64_t sequence, int64_t group) const {
  const Heads heads(op.qkv.shape);
  const auto convert = kernels_.copy[storage_of(op.k_cache.dtype)][storage_of(op.qkv.dtype)];
  for (int64_t t = 0; t < heads.s; ++t) {
    const int64_t to = cache_place(op, sequence, group, op.past + t), from = t * heads.qkv_stride();
    convert(at(op.k_cache, to), at(op.qkv, from + heads.qkv_place(sequence, group, heads.r)), heads.head);
    convert(at(op.v_cache, to), at(op.qkv, from + heads.qkv_place(sequence, group, heads.r + 1)), heads.head);
  }
}

void AttentionRunner::cached_attention_in_fp32(const CachedAttention& op) const {
  const Heads heads(op.qkv.shape);
  const auto attention = kernels_.cached_attention[storage_of(op.k_cache.dtype)];
  const int64_t window = op.hides() ? op.window : op.past + heads.s;
  const size_t scratch = kernels_.cached_attention_scratch(window, heads.r);
  team_.for_each_block(heads.b * heads.groups, [&](int64_t block) {
    const int64_t sequence = block / heads.groups, group = block % heads.groups;
    append_to_cache(op, sequence, group);
    const CachedAttentionArgs args{.out = op.out.as<float>() + heads.out_place(sequence, group * heads.r),
                                   .q = op.qkv.as<float>() + heads.qkv_place(sequence, group, 0),
                                   .k = at(op.k_cache, cache_place(op, sequence, group, 0)),
                                   .v = at(op.v_cache, cache_place(op, sequence, group, 0)),
                                   .out_stride = heads.out_stride(),
                                   .q_stride = heads.qkv_stride(),
                                   .queries = heads.s,
                                   .heads = heads.r,
                                   .past = op.past,
                                   .head = heads.head,
                                   .scale = op.scale,
                                   .window = window};
    attention(args, thread_scratch(scratch));
  });
}

void AttentionRunner::run(const CachedAttention& op) const {
  // With fewer queries, transposing tiles of keys costs more than it saves.
  constexpr int64_t kFewQueries = 16;
  const Heads heads(op.qkv.shape);
  if (op.hides() && op.qkv.dtype != DType::kF32)
    fail(ErrorKind::kInternal, op.kName, ": on the CPU a window of ", op.window,
         " positions hides some in fp32 only, not in ", name_of(op.qkv.dtype));
  if (op.hides() ||
      (op.qkv.dtype == DType::kF32 && (heads.s < kFewQueries || op.k_cache.dtype != DType::kF32)))
    return cached_attention_in_fp32(op);
  const int64_t query_heads = heads.groups * heads.r;
  for_each_block(heads.b * heads.groups,
                 [&](int64_t block) { append_to_cache(op, block / heads.groups, block % heads.groups); });
  const auto attention = kernels_.attention[storage_of(op.qkv.dtype)];
  const size_t scratch = kernels_.attention_scratch(op.past + heads.s, heads.head);
  for_each_block(heads.b * query_heads, [&](int64_t block) {
    const int64_t sequence = block / query_heads, head = block % query_heads, group = head / heads.r;
    const AttentionArgs args{.out = at(op.out, heads.out_place(sequence, head)),
                             .q = at(op.qkv, heads.qkv_place(sequence, group, head % heads.r)),
                             .k = at(op.k_cache, cache_place(op, sequence, group, 0)),
                             .v = at(op.v_cache, cache_place(op, sequence, group, 0)),
                             .lse = nullptr,
                             .out_stride = heads.out_stride(),
                             .q_stride = heads.qkv_stride(),
                             .kv_stride = heads.head,
                             .queries = heads.s,
                             .keys = op.past + heads.s,
                             .head = heads.head,
                             .rows = spans_of({.first = op.past}),
                             .scale = op.scale,
                             .key = {0, 0, 0, 0},
                             .mask_rows = {0, 0, 0},
                             .sample = 0,
                             .first_column = 0};
    attention(args, thread_scratch(scratch));
  });
}

}  // namespace megalith::cpu
