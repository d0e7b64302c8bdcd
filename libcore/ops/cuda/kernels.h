#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libcore/ops/activation_function.h"
#include "libcore/ops/cuda/element_maths.h"
#include "libcore/ops/cuda/runtime.h"

/// The kernels' side of the CUDA backend: plain structs and launchers. A launcher enqueues on the stream and
/// returns; it throws kDevice if the launch is refused. Rows, columns and strides count elements. No kernel
/// uses atomics, so results are reproducible bit for bit. Includes few headers: nvcc reads this once per
/// architecture.
namespace megalith::cuda {

/// How an activation or weight is stored. fp16 is only for copies, add and AdamW's value; the
/// other launchers take none.
enum class Storage { kF32, kBf16, kF16 };

constexpr int64_t kMaxGrid = 0x7fffffff;  // blocks of a one-dimensional grid
/// Throws kUsage: the grid has more blocks than a device takes.
[[noreturn]] void refuse_grid(int64_t blocks);

// ---- elementwise.cu

void launch_copy(cudaStream_t, void* to, Storage to_storage, const void* from, Storage from_storage,
                 int64_t n);
void launch_add(cudaStream_t, void* to, Storage to_storage, const void* from, Storage from_storage,
                int64_t n);
/// Sets n elements of `size` bytes (1, 2, 4 or 8) to the low bytes of `bits`.
void launch_fill(cudaStream_t, void* to, size_t size, uint64_t bits, int64_t n);
/// Each row of c [rows, columns] = bias [columns] (+ c with `add`).
struct RowBias {
  void* c;
  Storage c_storage;
  const void* bias;
  Storage bias_storage;
  int64_t rows, columns;
  bool add;
};
void launch_row_bias(cudaStream_t, const RowBias&);

void launch_activate(cudaStream_t, Storage, ActivationFunction, void* y, const void* x, int64_t n);
void launch_activate_grad(cudaStream_t, Storage, ActivationFunction, void* dx, const void* dy, const void* x,
                          int64_t n);
void launch_swiglu(cudaStream_t, Storage, void* y, const void* x, int64_t rows, int64_t columns);
/// x, dx [rows, 2, columns], dy [rows, columns].
struct SwiGluGradArgs {
  void* dx;
  const void *dy, *x;
  int64_t rows, columns;
};
void launch_swiglu_grad(cudaStream_t, Storage, const SwiGluGradArgs&);

struct DropoutArgs {
  void* y;
  const void *x, *residual;  // residual may be null
  const int64_t* samples;    // [batch], on the device
  int64_t rows, columns, batch, first_position;
  MaskKey key;
};
void launch_dropout(cudaStream_t, Storage, const DropoutArgs&);

struct RopeArgs {
  void* qkv;
  const float *cos, *sin;  // [positions, half], from the position of row 0 on
  float sin_sign;          // -1 for the inverse
  int64_t positions;
  int64_t position_heads;  // heads of one position: batch * groups * (r + 2)
  int64_t group_heads;     // r + 2
  int64_t head, half;
};
void launch_rope(cudaStream_t, Storage, const RopeArgs&);

struct AdamArgs {
  float *master, *m, *v;
  const float* grad;
  void* value;  // may be null; value_storage is then not read
  Storage value_storage;
  int64_t n;
  const double* scalars;  // [StepScalar::kCount], on the device
  AdamConstants constants;
};
void launch_adamw(cudaStream_t, const AdamArgs&);
void launch_decide_step(cudaStream_t, double* scalars, double max_norm);

// ---- rows.cu: one block of threads per row

struct NormArgs {
  void *y, *sum;  // sum: null without residual
  const void *x, *residual, *w, *b;
  float *mean, *rstd;  // may be null
  int64_t rows, columns;
  float eps;
  bool centred;  // true: LayerNorm; false: RmsNorm, which has no b or mean
};
void launch_norm(cudaStream_t, Storage, const NormArgs&);

struct NormGradArgs {
  void* dx;
  const void *dy, *x, *w, *add;  // add may be null
  const float *mean, *rstd;      // mean: null for RmsNorm
  int64_t rows, columns;
};
void launch_norm_grad(cudaStream_t, Storage, const NormGradArgs&);

struct SoftmaxArgs {
  float *max, *sum_exp;
  const void* logits;
  int64_t rows, stride, columns;
};
void launch_softmax_stats(cudaStream_t, Storage, const SoftmaxArgs&);

void launch_softmax_rescale(cudaStream_t, float* sum_exp, const float* from, const float* to, int64_t n);

struct CrossEntropyArgs {
  float* loss;
  void* logits;
  const float *max, *sum_exp;
  const int32_t* targets;
  const float* mask;  // may be null
  int64_t rows, stride, columns;
  float scale;
  bool want_grad;
  int32_t first_id;
};
void launch_cross_entropy(cudaStream_t, Storage, const CrossEntropyArgs&);

// ---- reduce.cu

/// Adds the column sums of dy [rows, columns] to `plain`, and those of dy (x - mean) rstd to `normed`.
/// `plain` or `normed` may be null. x, mean and rstd are read only for `normed`; a null mean counts as 0.
struct ColumnSums {
  float *plain, *normed;
  const void *dy, *x;
  const float *mean, *rstd;
  int64_t rows, columns;
};
/// `workspace`: column_sums_bytes().
void launch_column_sums(cudaStream_t, Storage, const ColumnSums&, void* workspace);

/// out[0] += sum of squares. `workspace`: sum_bytes(n).
void launch_sum_squares(cudaStream_t, Storage, double* out, const void* x, int64_t n, void* workspace);
struct ScaledSumArgs {
  double* out;
  const float* x;
  int64_t n;
  double scale;
};
/// out[0] += scale * sum. `workspace`: sum_bytes(n).
void launch_scaled_sum(cudaStream_t, const ScaledSumArgs&, void* workspace);

struct EmbeddingArgs {
  void* y;
  const void *table, *positions;  // positions: from the position of row 0 on; may be null
  const int32_t* ids;
  int64_t rows, batch, columns, vocabulary;
  int32_t first_id;
};
void launch_embedding(cudaStream_t, Storage, const EmbeddingArgs&);

struct EmbeddingGradArgs {
  float *dtable, *dpositions;  // dpositions: from the position of row 0 on; may be null
  const void* dy;
  const int32_t* ids;
  int64_t rows, batch, columns, vocabulary;
  int32_t first_id;
};
void launch_embedding_grad(cudaStream_t, Storage, const EmbeddingGradArgs&);

// ---- attention.cu

constexpr int64_t kWidestHead = 256;

/// Distances, in elements, between neighbours along three axes. The elements of a head are adjacent.
struct HeadStrides {
  int64_t position, sequence, group;
};

/// Query head h of group g of sequence b at position p begins at element p * q.position + b * q.sequence + g
/// * q.group + h * head of the queries.
struct AttentionShape {
  int64_t batch, groups, r, queries, past, head;  // query i sees the keys up to past + i
  HeadStrides q, kv;
  MEGALITH_HD int64_t heads() const { return batch * groups * r; }
};

struct AttentionMask {
  MaskKey key;
  const int64_t* samples;  // [batch], on the device
  int64_t first_position, first_head;
};

struct AttentionArgs {
  void* out;  // [queries, batch, groups * r, head]
  const void *q, *k, *v;
  float* lse;  // [batch, groups * r, queries], may be null
  AttentionShape shape;
  float scale;
  AttentionMask mask;
};
void launch_attention(cudaStream_t, Storage, const AttentionArgs&);

struct AttentionGradArgs {
  void *dq, *dk, *dv;  // same strides as q, k, v
  const void *q, *k, *v, *out, *dout;
  const float* lse;
  float* delta;  // [batch, groups * r, queries], scratch
  AttentionShape shape;
  float scale;
  AttentionMask mask;
};
void launch_attention_grad(cudaStream_t, Storage, const AttentionGradArgs&);

/// Copies the k and v heads of new rows to the cache [batch, groups, capacity, head] from position `past` on.
struct CacheAppend {
  void *k_cache, *v_cache;
  const void *k, *v;
  AttentionShape shape;  // shape.kv: strides of the cache; shape.q: strides of k and v of the new rows
};
void launch_cache_append(cudaStream_t, Storage, const CacheAppend&);

}  // namespace megalith::cuda
