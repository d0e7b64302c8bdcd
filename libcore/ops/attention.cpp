#include "libcore/ops/attention.h"

#include <algorithm>

#include "libcore/ops/checks.h"

namespace megalith {
namespace {

void check_packed(const char* op, const ConstView& qkv) {
  want_float(op, "qkv", qkv);
  require(qkv.shape.rank == 5 && qkv.shape[3] >= 3, op, "qkv [s, b, groups, r + 2, head] with r >= 1",
          qkv.shape, qkv.shape.rank);
}

/// Checks that `out` is [s, b, groups * r, head] or has the last two of these axes joined.
void check_heads(const char* op, const char* rule, const ConstView& out, const ConstView& qkv) {
  want_dtype(op, rule, out, qkv.dtype);
  const int64_t wanted = qkv.shape[0] * qkv.shape[1] * qkv.shape[2] * (qkv.shape[3] - 2) * qkv.shape[4];
  require(out.elements() == wanted && out.shape[0] == qkv.shape[0] && out.shape[1] == qkv.shape[1], op, rule,
          out.shape, qkv.shape);
}

void check_starts(const char* op, const ConstView& starts, const ConstView& qkv) {
  if (starts) want_vector(op, "starts [s, b]", starts, qkv.shape[0] * qkv.shape[1], DType::kI32);
}

void check_window(const char* op, int64_t window) {
  require(window >= 0, op, "a window of 0 or more positions", window, 0);
}

int64_t query_heads(const ConstView& qkv) {
  return qkv.shape[1] * qkv.shape[2] * (qkv.shape[3] - 2);
}

/// Counts the query-key pairs of the whole batch and all heads; a query at position p sees p + 1 keys.
double causal_pairs(const ConstView& qkv, const RowPositions& rows) {
  const int64_t s = qkv.shape[0], after = std::clamp<int64_t>(s - std::max<int64_t>(rows.split, 0), 0, s);
  const double pairs = static_cast<double>(s) * static_cast<double>(s + 1) / 2 +
                       static_cast<double>(s) * static_cast<double>(rows.first) +
                       static_cast<double>(after) * static_cast<double>(rows.jump);
  return static_cast<double>(query_heads(qkv)) * pairs;
}

/// Checks `kv`, the separate tensor of keys and values, and `rows`, the positions of qkv's queries. Without
/// `kv`, `rows` must be the default.
void check_apart(const char* op, const ConstView& kv, const ConstView& qkv, const RowPositions& rows) {
  if (!kv)
    return require(rows.first == 0 && rows.one_span(), op, "all positions without kv", rows.first, rows.jump);
  const Shape& s = qkv.shape;
  want_dtype(op, "kv [s_total, b, groups, 2, head], of qkv's dtype,", kv, qkv.dtype);
  require(kv.shape.rank == 5 && kv.shape == Shape{kv.shape[0], s[1], s[2], 2, s[4]}, op,
          "kv [s_total, b, groups, 2, head]", kv.shape, s);
  const int64_t end = s[0] == 0 ? rows.first : rows.end(s[0]);
  require(rows.valid() && end <= kv.shape[0], op, "the queries' positions within kv", end, kv.shape);
}

}  // namespace

void Rope::check() const {
  check_packed(kName, qkv);
  want_dtype(kName, "cos", cos, DType::kF32);
  want_dtype(kName, "sin", sin, DType::kF32);
  require(cos.shape == sin.shape && cos.shape.rank == 2, kName, "cos and sin [positions, rotated / 2]",
          cos.shape, sin.shape);
  require(2 * cos.shape[1] <= qkv.shape[4], kName, "rotated part within a head", cos.shape, qkv.shape);
  const int64_t end = qkv.shape[0] == 0 ? rows.first : rows.end(qkv.shape[0]);
  require(rows.valid() && end <= cos.shape[0], kName, "the rows' positions within the table", end, cos.shape);
  check_starts(kName, starts, qkv);
}

// Counts three operations per rotated element; the op reads and writes the q and k heads.
Cost Rope::cost() const {
  const double heads = static_cast<double>(qkv.shape[0] * qkv.shape[1] * qkv.shape[2] * (qkv.shape[3] - 1));
  const double rotated = heads * static_cast<double>(2 * cos.shape[1]);
  return {3 * rotated, 2 * rotated * static_cast<double>(size_of(qkv.dtype)) +
                           static_cast<double>(qkv.shape[0] * cos.shape[1]) * 2 * size_of(DType::kF32)};
}

void Attention::check() const {
  check_packed(kName, qkv);
  check_heads(kName, "out [s, b, groups * r, head]", out, qkv);
  if (lse) want_vector(kName, "lse [b, groups * r, s]", lse, query_heads(qkv) * qkv.shape[0], DType::kF32);
  dropout.check(kName, qkv.shape[1]);
  check_apart(kName, kv, qkv, rows);
  check_starts(kName, starts, qkv);
  require(!(starts && kv), kName, "documents kept apart where qkv has all keys", starts.shape, kv.shape);
  check_window(kName, window);
}

// Two matrix products, 2 flops per multiply-add, over the pairs that a causal mask leaves. The exponentials
// are not counted: there is only one per several hundred flops.
Cost Attention::cost() const {
  return {4 * causal_pairs(qkv, rows) * static_cast<double>(qkv.shape[4]),
          bytes_of(qkv) + bytes_of(kv) + bytes_of(out) + bytes_of(lse)};
}

void AttentionGrad::check() const {
  check_packed(kName, qkv);
  require(dqkv.shape == qkv.shape && dqkv.dtype == qkv.dtype && dqkv, kName, "dqkv and qkv alike", dqkv.shape,
          qkv.shape);
  check_heads(kName, "out [s, b, groups * r, head]", out, qkv);
  check_heads(kName, "dout [s, b, groups * r, head]", dout, qkv);
  want_vector(kName, "lse [b, groups * r, s]", lse, query_heads(qkv) * qkv.shape[0], DType::kF32);
  dropout.check(kName, qkv.shape[1]);
  check_apart(kName, kv, qkv, rows);
  require(bool(dkv) == bool(kv) && (!kv || (dkv.shape == kv.shape && dkv.dtype == kv.dtype)), kName,
          "dkv and kv alike", dkv.shape, kv.shape);
  check_starts(kName, starts, qkv);
  require(!(starts && kv), kName, "documents kept apart where qkv has all keys", starts.shape, kv.shape);
  check_window(kName, window);
}

// Five matrix products: the scores, which are recomputed, dV, dP, dQ and dK.
Cost AttentionGrad::cost() const {
  return {10 * causal_pairs(qkv, rows) * static_cast<double>(qkv.shape[4]),
          bytes_of(qkv) + bytes_of(dqkv) + bytes_of(kv) + bytes_of(dkv) + bytes_of(out) + bytes_of(dout) +
              bytes_of(lse)};
}

void CopyKeyValues::check() const {
  want_float(kName, "to", to);
  want_dtype(kName, "from, of to's dtype,", from, to.dtype);
  const Shape &a = to.shape, &b = from.shape;
  require(a.rank == 5 && b.rank == 5 && a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[4] == b[4] &&
              a[3] >= 2 && b[3] >= 2,
          kName, "to and from [s, b, groups, 2 or more, head]", a, b);
}

Cost CopyKeyValues::cost() const {
  const int64_t moved = 2 * to.shape[0] * to.shape[1] * to.shape[2] * to.shape[4];
  return {0, 2 * static_cast<double>(moved) * static_cast<double>(size_of(to.dtype))};
}

void CachedAttention::check() const {
  check_packed(kName, qkv);
  check_heads(kName, "out [t, b, groups * r, head]", out, qkv);
  want_float(kName, "k_cache", k_cache);
  require(k_cache.dtype == qkv.dtype || k_cache.dtype == DType::kBf16, kName,
          "a cache of qkv's dtype or bf16", name_of(k_cache.dtype), name_of(qkv.dtype));
  want_dtype(kName, "v_cache, of k_cache's dtype,", v_cache, k_cache.dtype);
  const Shape& cache = k_cache.shape;
  require(cache == v_cache.shape && cache.rank == 4, kName, "k_cache and v_cache [b, groups, capacity, head]",
          cache, v_cache.shape);
  require(cache[0] == qkv.shape[1] && cache[1] == qkv.shape[2] && cache[3] == qkv.shape[4], kName,
          "a cache of qkv's batch, groups and head", cache, qkv.shape);
  require(past >= 0 && past + qkv.shape[0] <= cache[2], kName, "past + t within the cache",
          past + qkv.shape[0], cache);
  check_window(kName, window);
}

Cost CachedAttention::cost() const {
  const int64_t before = window > 0 ? std::min(past, window - 1) : past;
  const double row = static_cast<double>(qkv.shape[1] * qkv.shape[2] * qkv.shape[4] * 2) *
                     static_cast<double>(size_of(qkv.dtype));  // bytes of k and v at one position
  return {4 * causal_pairs(qkv, {.first = before}) * static_cast<double>(qkv.shape[4]),
          bytes_of(qkv) + bytes_of(out) + row * static_cast<double>(before + 2 * qkv.shape[0])};
}

}  // namespace megalith
