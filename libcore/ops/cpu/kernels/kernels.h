#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libcore/ops/activation_function.h"
#include "libcore/ops/random/mask_key.h"
#include "libcore/ops/row_part.h"
#include "libcore/ops/step_scalars.h"

/// The kernels' side of the CPU backend: plain structs and a table of functions, filled once per instruction
/// set.
///
/// A kernel works on one block of an op in the calling thread. cpu_backend.cpp divides ops into blocks, which
/// are the same for any number of threads. Rows, columns and strides count elements.
///
/// kernels.cpp and the kernels_ISA.cpp files include kernels.inc. The kernels_ISA.cpp files are compiled with
/// flags that this processor may not support. So this header and every other header that they include must
/// not contain an inline function or a template instance with external linkage: the linker keeps one copy of
/// such a function for the whole library, perhaps the one for AVX-512. So they include no C++ standard
/// headers, and from libcore only headers without such functions.
namespace megalith::cpu {

/// How an activation or weight is stored: the indices of the tables in Kernels. Arithmetic is in fp32.
enum Storage {
  kF32,
  kBf16,
  kF16,
  kStorages,
  kI8 = kStorages,  // 8-bit weights, which only Project reads
  kWeightStorages
};

struct NormArgs {
  void *y, *sum;  // sum: null without residual
  const void *x, *residual, *w, *b;
  float *mean, *rstd;  // may be null
  int64_t columns;
  float eps;
  RowPart part;
};

struct NormGradArgs {
  void* dx;
  const void *dy, *x, *w, *add;  // add may be null
  const float *mean, *rstd;
  int64_t columns;
  RowPart part;
};

/// The fields of RowPositions, whose header has functions and so cannot be included here.
struct RowSpans {
  int64_t first, split, jump;
};

struct DropoutArgs {
  void* y;
  const void *x, *residual;  // residual may be null
  const int64_t* samples;    // [batch]
  int64_t columns, batch, first_column;
  RowSpans rows;
  MaskKey key;
};

struct RopeArgs {
  void* qkv;
  const float *cos, *sin;  // [positions, half]
  RowSpans rows;
  float sin_sign;          // -1 for the inverse
  int64_t position_heads;  // heads of one position: batch * groups * (r + 2)
  int64_t group_heads;     // r + 2
  int64_t head, half;
  const int32_t* starts;  // [s, batch], as in Rope; may be null
  int64_t batch;
};

/// For each row, the row at which its document begins; the row sees no key before that. If `rows` is null,
/// all documents begin at row 0.
struct DocumentStarts {
  const int32_t* rows = nullptr;
  int64_t stride = 0;

  int64_t of(int64_t row) const { return rows == nullptr ? 0 : rows[row * stride]; }
};

/// The first key that a query sees, by its document and by its window.
struct FirstKeys {
  DocumentStarts documents = {};
  int64_t window = 0;  // the number of keys that a query sees at most; 0: all
};

/// One query head of one sequence against `keys` keys; query i sees the keys up to its own position.
struct AttentionArgs {
  void* out;
  const void *q, *k, *v;
  float* lse;  // [queries], may be null
  int64_t out_stride, q_stride, kv_stride;
  int64_t queries, keys, head;
  RowSpans rows;  // positions of the queries
  float scale;
  MaskKey key;
  RowSpans mask_rows;
  int64_t sample;
  uint64_t first_column;  // column of key 0 in the dropout mask: head number times keys
  FirstKeys seen = {};
};

/// The query heads of one group of one sequence, with their shared key and value head.
struct AttentionGradArgs {
  void *dq, *dk, *dv;
  const void *q, *k, *v, *out,
      *dout;         // q, dq, out, dout: of the group's first head; the other heads follow
  const float* lse;  // [r, queries]
  int64_t q_stride, kv_stride, out_stride;
  int64_t queries, keys, heads, head;
  RowSpans rows;
  float scale;
  MaskKey key;
  RowSpans mask_rows;
  int64_t sample;
  uint64_t first_column;
  FirstKeys seen = {};
};

/// y[i, j] = scales[j] * (sum over k of x[i, k] w[j, k]) + bias[j].
struct ProjectArgs {
  float* y;
  const float* x;
  const void* w;
  const float *scales, *bias;  // may be null
  int64_t rows, columns;       // of x
  int64_t x_stride, y_stride;
};

struct QuantizeArgs {
  int8_t* q;
  float* scales;
  const void* w;  // not read by widen_rows
  int64_t columns;
};

/// The query heads of one group of one sequence against its keys 0 .. past + queries - 1, in fp32; query i
/// sees the keys up to past + i.
struct CachedAttentionArgs {
  float* out;
  const float* q;     // the heads of a group are adjacent, as in out
  const void *k, *v;  // [capacity, head]
  int64_t out_stride, q_stride;
  int64_t queries, heads, past, head;
  float scale;
  int64_t window;  // the largest number of positions that a query sees
};

struct CrossEntropyArgs {
  float* loss;
  void* logits;
  const float *max, *sum_exp;
  const int32_t* targets;
  const float* mask;  // may be null
  int64_t stride, columns;
  float scale;
  bool want_grad;
  int32_t first_id;
};

struct AdamArgs {
  float* master;
  void* m;
  float* v;
  const float* grad;
  void* value;  // may be null
  AdamRates rates;
};

/// The kernels of one instruction set. An array [kStorages] is indexed by the Storage of the activations
/// unless stated otherwise. A kernel processes the rows [begin, end), or elements if the op has no rows.
struct Kernels {
  const char* name;

  void (*layer_norm[kStorages])(const NormArgs&, int64_t begin, int64_t end);
  void (*rms_norm[kStorages])(const NormArgs&, int64_t begin, int64_t end);
  /// dw, db [columns] are overwritten with the sums over the block's rows; null: not wanted.
  void (*layer_norm_grad[kStorages])(const NormGradArgs&, float* dw, float* db, int64_t begin, int64_t end);
  void (*rms_norm_grad[kStorages])(const NormGradArgs&, float* dw, int64_t begin, int64_t end);
  /// sums [columns] is overwritten with the sums over the block's rows.
  void (*column_sums[kStorages])(float* sums, const void* x, int64_t columns, int64_t begin, int64_t end);

  void (*activate[kStorages])(void* y, const void* x, ActivationFunction, int64_t begin, int64_t end);
  void (*activate_grad[kStorages])(void* dx, const void* dy, const void* x, ActivationFunction, int64_t begin,
                                   int64_t end);
  void (*swiglu[kStorages])(void* y, const void* x, int64_t columns, int64_t begin, int64_t end);
  void (*swiglu_grad[kStorages])(void* dx, const void* dy, const void* x, int64_t columns, int64_t begin,
                                 int64_t end);

  void (*dropout[kStorages])(const DropoutArgs&, int64_t begin, int64_t end);
  /// Rotates the positions [begin, end).
  void (*rope[kStorages])(const RopeArgs&, int64_t begin, int64_t end);
  /// scratch: attention_scratch() or attention_grad_scratch() floats, 64-byte aligned.
  void (*attention[kStorages])(const AttentionArgs&, float* scratch);
  void (*attention_grad[kStorages])(const AttentionGradArgs&, float* scratch);
  size_t (*attention_scratch)(int64_t keys, int64_t head);
  size_t (*attention_grad_scratch)(int64_t queries, int64_t keys, int64_t head);

  void (*softmax_stats[kStorages])(float* max, float* sum_exp, const void* logits, int64_t stride,
                                   int64_t columns, int64_t begin, int64_t end);
  void (*cross_entropy[kStorages])(const CrossEntropyArgs&, int64_t begin, int64_t end);

  /// For rows [begin, end) of w; indexed by the Storage of w. The order of a sum over columns does not depend
  /// on the number of rows of x, so that a generated text does not depend on the other texts in its batch.
  void (*project[kWeightStorages])(const ProjectArgs&, int64_t begin, int64_t end);
  /// Rows [begin, end): q = round(w / scale), scale = max |w| of the row / 127. Indexed by the Storage of w.
  void (*quantize_rows[kStorages])(const QuantizeArgs&, int64_t begin, int64_t end);
  /// to[row, :] = scales[row] q[row, :] for the rows [begin, end); `to` holds only these.
  void (*widen_rows)(float* to, const QuantizeArgs&, int64_t begin, int64_t end);
  /// Converts n 8-bit numbers to bf16, which represents each of them exactly.
  void (*int8_to_bf16)(void* to, const void* from, int64_t n);
  /// Indexed by the Storage of the cache. scratch: cached_attention_scratch() floats.
  void (*cached_attention[kStorages])(const CachedAttentionArgs&, float* scratch);
  size_t (*cached_attention_scratch)(int64_t keys, int64_t heads);

  double (*sum_squares[kStorages])(const void* x, int64_t n);
  /// Indexed by the Storages of value and of m, which is kF32 or kBf16.
  void (*adamw[kStorages][2])(const AdamArgs&, int64_t begin, int64_t end);
  /// Indexed by the Storages of `to` and `from`; n elements.
  void (*copy[kStorages][kStorages])(void* to, const void* from, int64_t n);
  void (*add[kStorages][kStorages])(void* to, const void* from, int64_t n);
};

extern const Kernels kKernelsGeneric, kKernelsAvx2, kKernelsAvx512, kKernelsAvx512Bf16;

}  // namespace megalith::cpu
