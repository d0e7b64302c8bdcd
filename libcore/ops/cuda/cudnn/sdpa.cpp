#include "libcore/ops/cuda/cudnn/sdpa.h"

#include <array>
#include <cstddef>
#include <limits>

namespace megalith::cuda::cudnn {
namespace {

DataType type_of(DType dtype) {
  return dtype == DType::kBf16 ? kBfloat16 : kHalf;
}

}  // namespace

/// The forms of a kind's tensors, `n` samples of it. A row of all samples has n_all times one sample's
/// columns.
struct Sdpa::Forms {
  Forms(const AttentionKind& kind, int64_t samples)
      : n_all(kind.batch * kind.groups),
        n(samples),
        r(kind.r),
        s(kind.rows),
        d(kind.head),
        type(type_of(kind.dtype)) {}

  int64_t n_all, n, r, s, d;
  DataType type;
  int64_t packed() const { return (r + 2) * d; }  // columns of a sample in qkv

  TensorForm q() const { return {{n, r, s, d}, {packed(), d, n_all * packed(), 1}, type}; }
  TensorForm kv() const { return {{n, 1, s, d}, {packed(), d, n_all * packed(), 1}, type}; }
  TensorForm kv_transposed() const { return {{n, 1, d, s}, {packed(), d, 1, n_all * packed()}, type}; }
  TensorForm out() const { return {{n, r, s, d}, {r * d, d, n_all * r * d, 1}, type}; }
  TensorForm row() const { return {{n, r, s, 1}, {r * s, s, 1, 1}, kFloat}; }
  TensorForm one() const { return {{1, 1, 1, 1}, {1, 1, 1, 1}, kFloat}; }
  // Without memory:
  TensorForm scores(DataType of) const { return {{n, r, s, s}, {r * s * s, s * s, s, 1}, of}; }
  TensorForm scores_transposed() const { return {{n, r, s, s}, {r * s * s, s * s, 1, s}, type}; }
  TensorForm rows_of_heads(DataType of) const { return {{n, r, s, d}, {r * s * d, s * d, d, 1}, of}; }
};

Sdpa::Sdpa(const Library& library, Handle handle, const AttentionKind& kind)
    : kind_(kind), slice_(kind), forward_(library, handle), backward_(library, handle) {
  describe_forward(Forms(kind, kind.batch * kind.groups));
  describe_backward(Forms(kind, slice_.samples));
  forward_.plan(SdpaSlice::kForwardBytes);
  backward_.plan(slice_.plan_bytes);
}

/// The scores that a query may see, and minus infinity for the others.
RawDescriptor Sdpa::masked(Graph& graph, const Forms& forms, RawDescriptor scores) {
  constexpr int64_t kRowAxis = 2, kColumnAxis = 3;
  const RawDescriptor row = graph.index(scores, kRowAxis, forms.scores(kInt32)),
                      column = graph.index(scores, kColumnAxis, forms.scores(kInt32));
  const RawDescriptor seen = graph.pointwise(kCompareGe, {row, column}, forms.scores(kBoolean));
  return graph.pointwise(kSelect, {scores, graph.tensor(kMinusInfinity, forms.one(), true), seen},
                         forms.scores(kFloat));
}

void Sdpa::describe_forward(const Forms& f) {
  Graph& g = forward_;
  const TensorForm scores = f.scores(kFloat);
  const RawDescriptor q = g.tensor(kQ, f.q()), k = g.tensor(kK, f.kv_transposed()), v = g.tensor(kV, f.kv());
  const RawDescriptor out = g.tensor(kOut, f.out()), lse = g.tensor(kLse, f.row()),
                      scale = g.tensor(kScale, f.one(), true);
  const RawDescriptor scaled = g.pointwise(kMul, {g.multiply(q, k, scores), scale}, scores);
  const RawDescriptor seen = masked(g, f, scaled);
  const RawDescriptor most = g.reduce(kMaxOf, seen, f.row());
  const RawDescriptor power = g.pointwise(kExp, {g.pointwise(kSub, {seen, most}, scores)}, scores);
  const RawDescriptor sum = g.reduce(kSumOf, power, f.row());
  g.pointwise_to(lse, kAdd, {most, g.pointwise(kLog, {sum}, f.row())});
  g.multiply_to(out, g.pointwise(kDiv, {power, sum}, f.scores(f.type)), v);
}

void Sdpa::describe_backward(const Forms& f) {
  Graph& g = backward_;
  const TensorForm scores = f.scores(kFloat);
  const RawDescriptor q = g.tensor(kQ, f.q()), k = g.tensor(kK, f.kv_transposed()),
                      v = g.tensor(kV, f.kv_transposed()), out = g.tensor(kOut, f.out()),
                      dout = g.tensor(kDout, f.out()), lse = g.tensor(kLse, f.row()),
                      delta = g.tensor(kDelta, f.row()), scale = g.tensor(kScale, f.one(), true);
  // delta: of each row, the product of out and its gradient.
  const RawDescriptor products = g.pointwise(kMul, {dout, out}, f.rows_of_heads(kFloat));
  const RawDescriptor sums = g.reduce(kSumOf, products, f.row());
  g.pointwise_to(delta, kMul, {sums, g.tensor(kOne, f.one(), true)});
  const RawDescriptor scaled = g.pointwise(kMul, {g.multiply(q, k, scores), scale}, scores);
  const RawDescriptor seen = masked(g, f, g.pointwise(kSub, {scaled, lse}, scores));
  const RawDescriptor p = g.pointwise(kExp, {seen}, scores);
  // Sums over the heads of a group, where it has several.
  const auto sum_of_heads = [&](Id id, RawDescriptor rows, RawDescriptor columns) {
    const RawDescriptor to = g.tensor(id, f.kv());
    if (f.r == 1) return g.multiply_to(to, rows, columns);
    g.reduce_to(to, kSumOf, g.multiply(rows, columns, f.rows_of_heads(f.type)));
  };
  sum_of_heads(kDv, g.reshape(p, f.scores_transposed()), dout);
  const RawDescriptor dp = g.pointwise(kSub, {g.multiply(dout, v, scores), delta}, scores);
  const RawDescriptor ds = g.pointwise(kMul, {g.pointwise(kMul, {dp, p}, scores), scale}, scores);
  sum_of_heads(kDk, g.reshape(ds, f.scores_transposed()), q);
  g.multiply_to(g.tensor(kDq, f.q()), ds, g.reshape(k, f.kv()));
}

namespace {

/// Sample `i` of what lies at `begin`, with `columns` elements of `size` bytes for each sample.
void* sample(const void* begin, int64_t i, int64_t columns, size_t size) {
  return static_cast<std::byte*>(const_cast<void*>(begin)) +  // cuDNN takes no pointers to const
         static_cast<size_t>(i * columns) * size;
}

/// Numbers that the host gives.
struct Numbers {
  float scale, minus_infinity = -std::numeric_limits<float>::infinity(), one = 1;
};

}  // namespace

void Sdpa::run(const Attention& op, void* workspace) const {
  constexpr std::array<int64_t, 7> kIds = {kQ, kK, kV, kOut, kLse, kScale, kMinusInfinity};
  const size_t size = size_of(kind_.dtype);
  Numbers numbers{.scale = op.scale};
  const std::array<void*, 7> pointers = {sample(op.qkv.data, 0, 0, size),
                                         sample(op.qkv.data, kind_.r, kind_.head, size),
                                         sample(op.qkv.data, kind_.r + 1, kind_.head, size),
                                         op.out.data,
                                         op.lse.data,
                                         &numbers.scale,
                                         &numbers.minus_infinity};
  forward_.run(kIds, pointers, workspace);
}

void Sdpa::run(const AttentionGrad& op, void* workspace) const {
  constexpr std::array<int64_t, 13> kIds = {kQ,   kK,    kV,  kOut, kLse, kScale, kMinusInfinity,
                                            kOne, kDout, kDq, kDk,  kDv,  kDelta};
  const size_t size = size_of(kind_.dtype);
  const int64_t packed = (kind_.r + 2) * kind_.head, key = kind_.r * kind_.head, value = key + kind_.head,
                columns = kind_.r * kind_.head, rows = kind_.r * kind_.rows;
  Numbers numbers{.scale = op.scale};
  for (int64_t i = 0; i < kind_.batch * kind_.groups; i += slice_.samples) {
    std::byte* const qkv = static_cast<std::byte*>(sample(op.qkv.data, i, packed, size));
    std::byte* const dqkv = static_cast<std::byte*>(sample(op.dqkv.data, i, packed, size));
    const std::array<void*, 13> pointers = {qkv,
                                            sample(qkv, 1, key, size),
                                            sample(qkv, 1, value, size),
                                            sample(op.out.data, i, columns, size),
                                            sample(op.lse.data, i, rows, sizeof(float)),
                                            &numbers.scale,
                                            &numbers.minus_infinity,
                                            &numbers.one,
                                            sample(op.dout.data, i, columns, size),
                                            dqkv,
                                            sample(dqkv, 1, key, size),
                                            sample(dqkv, 1, value, size),
                                            static_cast<std::byte*>(workspace) + slice_.plan_bytes};
    backward_.run(kIds, pointers, workspace);
  }
}

}  // namespace megalith::cuda::cudnn
