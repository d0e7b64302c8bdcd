#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libcore/ops/activation_function.h"
#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/ops/cuda/element_maths.h"
#include "libcore/ops/cuda/runtime.h"
#include "libcore/ops/row_part.h"

/// The kernels' side of the CUDA backend: plain structs and launchers. A launcher enqueues on the stream and
/// returns; it throws kDevice if the launch is refused. Rows, columns and strides count elements. No kernel
/// uses atomics, so results are reproducible bit for bit. Includes few headers: nvcc reads this once per
/// architecture.
namespace megalith::cuda {

/// How an activation or weight is stored.
enum class Storage { kF32, kBf16, kF16 };

constexpr int64_t kMaxGrid = 0x7fffffff;  // blocks of a one-dimensional grid
/// Throws kUsage: the grid has more blocks than a device takes.
[[noreturn]] void refuse_grid(int64_t blocks);

/// The positions of rows, as in RowPositions.
struct RowSpans {
  int64_t first, split, jump;
  MEGALITH_HD int64_t at(int64_t row) const { return first + row + (row >= split ? jump : 0); }
  /// The first row at this position or after it.
  MEGALITH_HD int64_t row_from(int64_t position) const {
    int64_t row = position - first;
    if (row >= split) row = row - jump > split ? row - jump : split;
    return row > 0 ? row : 0;
  }
};

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
/// x *= factor.
void launch_scale(cudaStream_t, Storage, void* x, float factor, int64_t n);
struct AdamArgs {
  float* master;
  void* m;
  float* v;
  const float* grad;
  void* value;                       // may be null; value_storage is then not read
  Storage value_storage, m_storage;  // of m: fp32 or bf16
  int64_t n;
  const double* scalars;  // [StepScalar::kCount], on the device
  AdamConstants constants;
};
void launch_adamw(cudaStream_t, const AdamArgs&);
void launch_decide_step(cudaStream_t, double* scalars, double max_norm);

// ---- lines.cu

/// y = x w^T (+ bias) in fp32: x [rows, in], w [out, in].
struct ProjectArgs {
  float* y;
  const float* x;
  const void* w;
  const float* bias;  // may be null
  int64_t rows, out, in;
};
void launch_project(cudaStream_t, Storage w_storage, const ProjectArgs&);

/// Copies `lines` lines of `bytes` bytes each, which begin to_stride and from_stride bytes apart.
struct LineCopy {
  void* to;
  const void* from;
  int64_t to_stride, from_stride, lines, bytes;
};
void launch_copy_lines(cudaStream_t, const LineCopy&);

/// Adds `lines` lines of `columns` elements each. Those of `to` begin to_stride elements apart; those of
/// `from` are adjacent.
struct LineSum {
  void* to;
  const void* from;
  int64_t to_stride, lines, columns;
};
void launch_add_lines(cudaStream_t, Storage, const LineSum&);

// ---- row_elements.cu

void launch_swiglu(cudaStream_t, Storage, void* y, const void* x, int64_t rows, int64_t columns);
/// x, dx [rows, 2, columns], dy [rows, columns].
struct SwiGluGradArgs {
  void* dx;
  const void *dy, *x;
  int64_t rows, columns;
};
void launch_swiglu_grad(cudaStream_t, Storage, const SwiGluGradArgs&);

/// The dropout mask of rows [positions, batch].
struct DropoutMask {
  MaskKey key;             // scale 0: nothing is dropped, and samples and positions are not read
  const int64_t* samples;  // [batch], on the device
  int64_t batch;
  RowSpans positions;
  MEGALITH_HD bool drops() const { return key.scale != 0; }
};
struct DropoutArgs {
  void* y;
  const void *x, *residual;  // residual may be null
  int64_t rows, columns;
  int64_t first_column;  // global number of column 0
  DropoutMask mask;
};
void launch_dropout(cudaStream_t, Storage, const DropoutArgs&);

struct RopeArgs {
  void* qkv;
  const float *cos, *sin;  // [positions, half]
  float sin_sign;          // -1 for the inverse
  RowSpans positions;
  const int32_t* starts;  // [rows, batch]: subtracted from positions; may be null
  int64_t rows, batch;
  int64_t sequence_heads;  // heads of one sequence in one row: groups * (r + 2)
  int64_t group_heads;     // r + 2
  int64_t head, half;
};
void launch_rope(cudaStream_t, Storage, const RopeArgs&);

/// The place of the first element of a row of the part.
MEGALITH_HD int64_t place_of(const RowPart& part, int64_t row, int64_t columns) {
  if (part.of == 1) return row * columns;
  return (row / part.count * part.of + part.first + row % part.count) * columns;
}

// ---- rows.cu: one block of threads per row. The launchers of norms try those of wide_rows.cu first

struct NormArgs {
  void *y, *sum;  // sum: null without residual
  const void *x, *residual, *w, *b;
  float *mean, *rstd;     // may be null
  int64_t rows, columns;  // rows: of the part
  float eps;
  bool centred;      // true: LayerNorm; false: RmsNorm, which has no b or mean
  DropoutMask mask;  // of x, with a residual
  RowPart part;      // all rows with a residual
};
void launch_norm(cudaStream_t, Storage, const NormArgs&);

struct NormGradArgs {
  void* dx;
  const void *dy, *x, *w, *add;  // add may be null
  const float *mean, *rstd;      // mean: null for RmsNorm
  int64_t rows, columns;         // rows: of the part
  RowPart part;
};
/// [columns], added to; may be null. db is null for RmsNorm.
struct NormWeightGrads {
  float *dw, *db;
};
/// `workspace` has norm_grad_bytes() bytes; it is not used if no weight's gradient is wanted.
void launch_norm_grad(cudaStream_t, Storage, const NormGradArgs&, const NormWeightGrads&, void* workspace);

/// A packed QKV [rows, groups, r + 2, head] whose query heads are normalized together, and its key heads.
struct HeadsArgs {
  const void *x, *q_w, *k_w;
  int64_t rows, groups, r, head;
  MEGALITH_HD int64_t columns() const { return groups * (r + 2) * head; }
};
struct HeadSumsArgs : HeadsArgs {
  float* sums;    // [2, rows]
  const void* d;  // null: sums of squares, and q_w and k_w are not read
};
void launch_head_sums(cudaStream_t, Storage, const HeadSumsArgs&);
struct HeadsNormArgs : HeadsArgs {
  void* y;
  const float* squares;  // [2, rows]
  float q_width, k_width, eps;
  MEGALITH_HD float rstd(int kind, int64_t row) const {
    return 1.0f / sqrtf(squares[kind * rows + row] / (kind == 0 ? q_width : k_width) + eps);
  }
};
void launch_heads_norm(cudaStream_t, Storage, const HeadsNormArgs&);
/// y: the gradient of the result, and then of x.
struct HeadsNormGradArgs : HeadsNormArgs {
  const float* dots;   // [2, rows]
  float *dq_w, *dk_w;  // may be null
};
/// `workspace` has heads_norm_grad_bytes() bytes.
void launch_heads_norm_grad(cudaStream_t, Storage, const HeadsNormGradArgs&, void* workspace);

struct SoftmaxArgs {
  float *max, *sum_exp;
  const void* logits;
  int64_t rows, stride, columns;
};
void launch_softmax_stats(cudaStream_t, Storage, const SoftmaxArgs&);

void launch_softmax_rescale(cudaStream_t, float* sum_exp, const float* from, const float* to, int64_t n);

/// What CrossEntropy and SoftmaxLoss have in common.
struct LossArgs {
  float* loss;
  void* logits;
  const int32_t* targets;
  const float* mask;  // may be null
  int64_t rows, stride, columns;
  float scale;
  const float* scale_at;  // a further factor; may be null
  bool want_grad;
};
struct CrossEntropyArgs : LossArgs {
  const float *max, *sum_exp;
  int32_t first_id;
};
void launch_cross_entropy(cudaStream_t, Storage, const CrossEntropyArgs&);

struct SoftmaxLossArgs : LossArgs {
  float *max, *sum_exp;  // written
};

// ---- wide_rows.cu: for rows that can be read in vectors of 16 bytes. These launchers return false, and
// enqueue nothing, if the rows cannot, or if a team cannot hold a row of the norm

bool launch_team_norm(cudaStream_t, Storage, const NormArgs&);
bool launch_team_norm_grad(cudaStream_t, Storage, const NormGradArgs&, const NormWeightGrads&,
                           void* workspace);
bool launch_softmax_loss(cudaStream_t, Storage, const SoftmaxLossArgs&);

// ---- reduce.cu

/// to[i] += the sum of partial [parts][sums][columns] over the parts, in order, for each i < sums; a null
/// to[i] is left out.
struct PartialSums {
  float* to[2];
  const float* partial;
  int64_t parts, columns;
  int sums;
};
void launch_add_partials(cudaStream_t, const PartialSums&);

/// Adds the column sums of dy [rows, columns] to `plain`, and those of dy (x - mean) rstd to `normed`.
/// `plain` or `normed` may be null. x, mean and rstd are read only for `normed`; a null mean counts as 0.
struct ColumnSums {
  float *plain, *normed;
  const void *dy, *x;
  const float *mean, *rstd;
  int64_t rows, columns;
  RowPart part = {};  // of dy and x
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
  const float* scale_at;  // a further factor; may be null
};
/// out[0] += scale * *scale_at * sum. `workspace`: sum_bytes(n).
void launch_scaled_sum(cudaStream_t, const ScaledSumArgs&, void* workspace);

// ---- embedding.cu

struct EmbeddingArgs {
  void* y;
  const void *table, *positions;            // positions may be null
  Storage table_storage, position_storage;  // y's, or narrower than an fp32 y
  const int32_t *ids, *starts;              // starts [rows]: subtracted from positions; may be null
  RowSpans spans;                           // positions of each `batch` rows
  int64_t rows, batch, columns, vocabulary;
  int32_t first_id;
};
void launch_embedding(cudaStream_t, Storage, const EmbeddingArgs&);

struct EmbeddingGradArgs {
  float *dtable, *dpositions;  // dpositions may be null
  const void* dy;
  const int32_t *ids, *starts;  // as in EmbeddingArgs
  RowSpans spans;
  int64_t rows, batch, columns, vocabulary;
  int32_t first_id;
};
/// `workspace`: EmbeddingScratch.
void launch_embedding_grad(cudaStream_t, Storage, const EmbeddingGradArgs&, void* workspace);

// ---- attention.cu

constexpr int64_t kWidestHead = 256;

/// Distances, in elements, between neighbours along three axes. The elements of a head are adjacent.
struct HeadStrides {
  int64_t position, sequence, group;
};

/// Query head h of group g of sequence b in row p begins at element p * q.position + b * q.sequence + g *
/// q.group + h * head of the queries. A query sees the keys from first_key() to its own position.
struct AttentionShape {
  int64_t batch, groups, r, queries, keys, head;
  HeadStrides q, kv;
  RowSpans rows;          // positions of the queries
  const int32_t* starts;  // [queries, batch]: the first key of a query's document; null: 0 for all
  int64_t window;         // the number of keys that a query sees at most; 0: all
  MEGALITH_HD int64_t heads() const { return batch * groups * r; }
  MEGALITH_HD int64_t last_key(int64_t query) const { return rows.at(query); }
  /// Never decreases from one query of a sequence to the next.
  MEGALITH_HD int64_t first_key(int64_t query, int64_t sequence) const {
    const int64_t start = starts == nullptr ? 0 : starts[query * batch + sequence];
    const int64_t reach = window == 0 ? 0 : rows.at(query) - window + 1;
    return reach > start ? reach : start;
  }
  /// The number of queries of a sequence whose first key comes before this one.
  MEGALITH_HD int64_t queries_before(int64_t key, int64_t sequence) const {
    if (starts == nullptr && window == 0) return queries;
    int64_t begin = 0, end = queries;
    while (begin < end) {
      const int64_t middle = (begin + end) / 2;
      if (first_key(middle, sequence) < key)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }
};

struct AttentionMask {
  MaskKey key;
  const int64_t* samples;  // [batch], on the device
  RowSpans rows;           // positions of the queries
  int64_t first_head;
};

struct AttentionArgs {
  void* out;  // [queries, batch, groups * r, head]
  const void *q, *k, *v;
  Storage kv_storage;
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

/// Copies the k and v heads of new rows to the cache [batch, groups, capacity, head], from the position of
/// the first row on.
struct CacheAppend {
  void *k_cache, *v_cache;
  Storage cache_storage;
  const void *k, *v;
  AttentionShape shape;  // shape.kv: strides of the cache; shape.q: strides of k and v of the new rows
};
void launch_cache_append(cudaStream_t, Storage, const CacheAppend&);

/// Attention of a few queries (decode.cu). `workspace`: decode_bytes().
void launch_decode(cudaStream_t, Storage, const AttentionArgs&, const DecodeCut&, void* workspace);

/// The heads of keys and values [positions, batch, groups, 2, head], of which a prefix [2, groups, positions,
/// head] has those that all sequences share.
struct PrefixArgs {
  void* kv;      // read by the gradient
  void* prefix;  // read by put_prefix; its gradient is in fp32
  int64_t positions, batch, groups, head;
};
void launch_put_prefix(cudaStream_t, Storage, const PrefixArgs&);
/// prefix += the sum of kv over the batch, in order.
void launch_prefix_grad(cudaStream_t, Storage, const PrefixArgs&);

// ---- flash.cu, flash_grad.cu: the same on the tensor cores

/// Whether these kernels compute it: in 16 bits, with heads of up to 128 columns and a multiple of 8.
bool on_tensor_cores(Storage, const AttentionArgs&);
bool on_tensor_cores(Storage, const AttentionGradArgs&);
void launch_flash(cudaStream_t, Storage, const AttentionArgs&);
void launch_flash_grad(cudaStream_t, Storage, const AttentionGradArgs&);

}  // namespace megalith::cuda
