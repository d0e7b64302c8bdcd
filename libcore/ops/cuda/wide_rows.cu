#include "libcore/ops/cuda/row_tools.h"

// Normalizations and the loss over rows that can be read in vectors of 16 bytes. Each tensor is read and
// written once: a team of threads holds the rows of a norm in registers (up to 16 KiB each), a block the row
// of the loss in shared memory. rows.cu has the others.

namespace megalith::cuda {
namespace {

constexpr int kHeldByTeam = 2;  // vectors of a row that a thread holds

// ---- norms

/// Reads a thread's share of a row that is to be normalized: x or, with a residual, dropout(x) + residual,
/// which is stored in `sum` and used as it is stored.
template <class T, int kHeld>
__device__ void hold_joined(Wide<T> (&held)[kHeld], const NormArgs& a, int64_t row, const RowShare& share) {
  hold(held, static_cast<const T*>(a.x) + row * a.columns, share);
  if (a.residual == nullptr) return;
  Wide<T> residual[kHeld];
  hold(residual, static_cast<const T*>(a.residual) + row * a.columns, share);
  T* const sum = static_cast<T*>(a.sum) + row * a.columns;
  const bool drops = a.mask.drops() && share.vectors > 0;
  const RowMask mask = drops ? row_mask(a.mask, row) : RowMask{};
  MEGALITH_UNROLL for (int j = 0; j < kHeld; ++j) {
    if (!share.has(j)) continue;
    const int64_t at = share.vector(j) * kPer<T>;
    Floats<kPer<T>> joined = widened(held[j]);
    if (drops) drop(joined, mask, static_cast<uint64_t>(at / 4));
    MEGALITH_UNROLL for (int k = 0; k < kPer<T>; ++k) joined.at[k] += widen(residual[j].at[k]);
    held[j] = narrowed<T>(joined);
    put_vector(sum + at, held[j]);
  }
}

/// The sum of the held numbers, or of the squares of their distances from `mean`.
template <bool kSquares, class T, int kHeld>
__device__ float own_sum(const Wide<T> (&held)[kHeld], const RowShare& share, float mean) {
  float sum = 0;
  MEGALITH_UNROLL for (int j = 0; j < kHeld; ++j) {
    if (!share.has(j)) continue;
    MEGALITH_UNROLL for (int k = 0; k < kPer<T>; ++k) {
      const float number = widen(held[j].at[k]) - mean;
      sum += kSquares ? number * number : number;
    }
  }
  return sum;
}

/// The numbers of a row that all its elements share.
struct RowScale {
  float mean, rstd;
};

template <class T, int kHeld>
__device__ RowScale scale_of(const Wide<T> (&held)[kHeld], const RowShare& share, const NormArgs& a,
                             int warps) {
  const float count = static_cast<float>(a.columns);
  const float mean = a.centred ? team_sum(own_sum<false, T>(held, share, 0), warps) / count : 0.0f;
  const float squares = team_sum(own_sum<true, T>(held, share, mean), warps);
  return {mean, 1.0f / sqrtf(squares / count + a.eps)};
}

template <class T, int kHeld>
__device__ void put_normed(T* y, const Wide<T> (&held)[kHeld], const Wide<T> (&w)[kHeld],
                           const Wide<T> (&b)[kHeld], const RowShare& share, const RowScale& scale) {
  MEGALITH_UNROLL for (int j = 0; j < kHeld; ++j) {
    if (!share.has(j)) continue;
    Floats<kPer<T>> normed = widened(held[j]);
    MEGALITH_UNROLL for (int k = 0; k < kPer<T>; ++k) normed.at[k] =
        (normed.at[k] - scale.mean) * scale.rstd * widen(w[j].at[k]) + widen(b[j].at[k]);
    put_vector(y + share.vector(j) * kPer<T>, narrowed<T>(normed));
  }
}

/// w and b stay in registers for all rows of the team.
template <class T>
__global__ void __launch_bounds__(kTeamThreads, 1) team_norm(NormArgs a, TeamCut cut) {
  const TeamPlace place(cut, a.rows);
  const int64_t vectors = a.columns / kPer<T>;
  const RowShare always = share_of(place, place.begin, vectors);
  Wide<T> w[kHeldByTeam], b[kHeldByTeam] = {}, held[kHeldByTeam];
  hold(w, static_cast<const T*>(a.w), always);
  if (a.b != nullptr) hold(b, static_cast<const T*>(a.b), always);
  MEGALITH_UNROLL_1 for (int64_t row = place.begin; row < place.begin + cut.rows; ++row) {
    const RowShare share = share_of(place, row, vectors);
    hold_joined(held, a, row, share);
    const RowScale scale = scale_of(held, share, a, place.warps);
    put_normed(static_cast<T*>(a.y) + row * a.columns, held, w, b, share, scale);
    if (share.vectors == 0 || place.lane != 0) continue;
    if (a.mean != nullptr) a.mean[row] = scale.mean;
    if (a.rstd != nullptr) a.rstd[row] = scale.rstd;
  }
}

/// mean and rstd of a team's rows, read for 32 rows at a time: each thread of a warp keeps those of one.
struct KeptScales {
  float mean = 0, rstd = 0;
  __device__ void read(const NormGradArgs& a, int64_t first, int64_t end) {
    const int64_t row = first + threadIdx.x % 32;
    if (row >= end) return;
    if (a.mean != nullptr) mean = a.mean[row];
    rstd = a.rstd[row];
  }
  __device__ RowScale of(int64_t number) const {
    const int keeper = static_cast<int>(number % 32);
    return {__shfl_sync(kWholeWarp, mean, keeper), __shfl_sync(kWholeWarp, rstd, keeper)};
  }
};

/// A thread's share of w and of a row of the other tensors, and its sums for the weights' gradients so far.
template <class T>
struct GradShare {
  Wide<T> w[kHeldByTeam], dy[kHeldByTeam], x[kHeldByTeam], add[kHeldByTeam] = {};
  Floats<kPer<T>> dw[kHeldByTeam] = {}, db[kHeldByTeam] = {};
};

/// Adds to the weights' sums, and returns the own sums of g and g xhat, g = dy w.
template <bool kCentred, class T>
__device__ Floats<2> add_row(GradShare<T>& grad, const RowShare& share, const RowScale& scale) {
  Floats<2> sums = {};
  MEGALITH_UNROLL for (int j = 0; j < kHeldByTeam; ++j) {
    if (!share.has(j)) continue;
    MEGALITH_UNROLL for (int k = 0; k < kPer<T>; ++k) {
      const float d = widen(grad.dy[j].at[k]), xhat = (widen(grad.x[j].at[k]) - scale.mean) * scale.rstd;
      const float g = d * widen(grad.w[j].at[k]);
      grad.dw[j].at[k] += d * xhat;
      if constexpr (kCentred) grad.db[j].at[k] += d;
      sums.at[0] += g;
      sums.at[1] += g * xhat;
    }
  }
  return sums;
}

/// dx = rstd (g - mean(g) - xhat mean(g xhat)) (+ add).
template <class T>
__device__ void put_dx(const NormGradArgs& a, int64_t row, const GradShare<T>& grad, const RowShare& share,
                       const RowScale& scale, const Floats<2>& means) {
  T* const dx = static_cast<T*>(a.dx) + row * a.columns;  // may share dy's or add's memory
  MEGALITH_UNROLL for (int j = 0; j < kHeldByTeam; ++j) {
    if (!share.has(j)) continue;
    Floats<kPer<T>> d = widened(grad.add[j]);
    MEGALITH_UNROLL for (int k = 0; k < kPer<T>; ++k) {
      const float g = widen(grad.dy[j].at[k]) * widen(grad.w[j].at[k]);
      const float xhat = (widen(grad.x[j].at[k]) - scale.mean) * scale.rstd;
      d.at[k] += scale.rstd * (g - means.at[0] - xhat * means.at[1]);
    }
    put_vector(dx + share.vector(j) * kPer<T>, narrowed<T>(d));
  }
}

/// Writes a thread's sums for the row of `partial` that is its team's. All threads of a team call it.
template <class T>
__device__ void put_sums(float* row, const Floats<kPer<T>> (&sums)[kHeldByTeam], const RowShare& share) {
  MEGALITH_UNROLL for (int j = 0; j < kHeldByTeam; ++j)
      put_floats_of_pairs(row, sums[j], share.has(j) ? static_cast<int>(share.vector(j)) : -1);
}

/// Also writes each team's sums of dy xhat and, if kCentred, of dy to `partial` [team][1 +
/// kCentred][columns].
template <class T, bool kCentred>
__global__ void __launch_bounds__(kTeamThreads, 1)
    team_norm_grad(NormGradArgs a, TeamCut cut, float* partial) {
  const TeamPlace place(cut, a.rows);
  const int64_t vectors = a.columns / kPer<T>;
  const float count = static_cast<float>(a.columns);
  const RowShare always = share_of(place, place.begin, vectors);
  GradShare<T> grad;
  KeptScales scales;
  hold(grad.w, static_cast<const T*>(a.w), always);
  MEGALITH_UNROLL_1 for (int64_t number = 0; number < cut.rows; ++number) {
    const int64_t row = place.begin + number;
    const RowShare share = share_of(place, row, vectors);
    if (number % 32 == 0) scales.read(a, row, place.end);
    const RowScale scale = scales.of(number);
    hold(grad.dy, static_cast<const T*>(a.dy) + row * a.columns, share);
    hold(grad.x, static_cast<const T*>(a.x) + row * a.columns, share);
    if (a.add != nullptr) hold(grad.add, static_cast<const T*>(a.add) + row * a.columns, share);
    Floats<2> means = team_sums(add_row<kCentred>(grad, share, scale), place.warps);
    means = {{kCentred ? means.at[0] / count : 0.0f, means.at[1] / count}};
    put_dx(a, row, grad, share, scale, means);
  }
  if (partial == nullptr || always.vectors == 0) return;
  float* const own = partial + place.team * (kCentred ? 2 : 1) * a.columns;
  put_sums<T>(own, grad.dw, always);
  if constexpr (kCentred) put_sums<T>(own + a.columns, grad.db, always);
}

// ---- loss

constexpr int kLossThreads = 512, kAtOnce = 4;  // vectors that a thread reads before it uses them
/// The most bytes of a row that a block holds: what every device of compute capability 8.0 or later gives it,
/// 99 KiB, without what sums over the block take. 50304 columns in bf16 take less.
constexpr size_t kMostHeld = (99 << 10) - 512;

/// e^x; a result of 16 bits needs no more bits than this has.
__device__ inline float exponential(float x, float) {
  return expf(x);
}
template <class T>
__device__ float exponential(float x, T) {
  return power_of_two(x * kLog2E);
}

/// A row of logits. Padding columns count as minus infinity: they add nothing, and their gradient is 0.
template <class T, bool kHolds>
struct LogitRow {
  T* data;
  int columns, vectors;
  Wide<T>* held;  // in shared memory; not used if the row is too long (kHolds is false)
  __device__ Wide<T> read(int i) const {
    Wide<T> vector = wide_at(data + int64_t{i} * kPer<T>);
    if ((i + 1) * kPer<T> <= columns) return vector;
    MEGALITH_UNROLL for (int k = 0; k < kPer<T>; ++k) if (i * kPer<T> + k >= columns) vector.at[k] =
        narrow<T>(-INFINITY);
    return vector;
  }
  __device__ Wide<T> again(int i) const {
    if constexpr (kHolds) return held[i];
    return read(i);
  }
};

/// Reads the row, holds it, and returns the largest of the thread's logits.
template <class T, bool kHolds>
__device__ float hold_logits(const LogitRow<T, kHolds>& row) {
  float max = -INFINITY;
  const int step = static_cast<int>(blockDim.x);
  for (int first = static_cast<int>(threadIdx.x); first < row.vectors; first += kAtOnce * step) {
    Wide<T> vectors[kAtOnce];
    MEGALITH_UNROLL for (int j = 0; j < kAtOnce; ++j) vectors[j] =
        first + j * step < row.vectors ? row.read(first + j * step) : Wide<T>{};
    MEGALITH_UNROLL for (int j = 0; j < kAtOnce; ++j) {
      if (first + j * step >= row.vectors) continue;
      if constexpr (kHolds) row.held[first + j * step] = vectors[j];
      MEGALITH_UNROLL for (int k = 0; k < kPer<T>; ++k) max = fmaxf(max, widen(vectors[j].at[k]));
    }
  }
  return max;
}

template <class T, bool kHolds>
__device__ float own_sum_exp(const LogitRow<T, kHolds>& row, float max) {
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < row.vectors; i += static_cast<int>(blockDim.x)) {
    const Floats<kPer<T>> logits = widened(row.again(i));
    MEGALITH_UNROLL for (int k = 0; k < kPer<T>; ++k) sum += exponential(logits.at[k] - max, T{});
  }
  return sum;
}

/// What all gradients of a row share: they are exp(logit - max) * factor, except at the target.
struct GradScale {
  float max, factor, at_target;
  int target;  // -1: none
};

template <class T, bool kHolds>
__device__ void put_logit_grads(const LogitRow<T, kHolds>& row, const GradScale& scale) {
  for (int i = static_cast<int>(threadIdx.x); i < row.vectors; i += static_cast<int>(blockDim.x)) {
    Floats<kPer<T>> grads = {};
    if (scale.factor != 0) grads = widened(row.again(i));
    MEGALITH_UNROLL for (int k = 0; k < kPer<T>; ++k) {
      if (scale.factor != 0) grads.at[k] = exponential(grads.at[k] - scale.max, T{}) * scale.factor;
      if (i * kPer<T> + k == scale.target) grads.at[k] = scale.at_target;
    }
    put_vector(row.data + int64_t{i} * kPer<T>, narrowed<T>(grads));
  }
}

/// One row per block, the last first: the product that made the logits has just written them.
template <class T, bool kHolds>
__global__ void __launch_bounds__(kLossThreads) softmax_loss(SoftmaxLossArgs a) {
  MEGALITH_DYNAMIC_SHARED(shared);
  const int64_t row = a.rows - 1 - blockIdx.x;
  const LogitRow<T, kHolds> logits{static_cast<T*>(a.logits) + row * a.stride, static_cast<int>(a.columns),
                                   static_cast<int>(a.stride / kPer<T>), reinterpret_cast<Wide<T>*>(shared)};
  const int64_t target = a.targets[row];
  const bool mine = target >= 0 && target < a.columns;
  const float weight = a.mask == nullptr ? 1.0f : a.mask[row];
  const float at_target = mine ? widen(logits.data[target]) : 0.0f;
  const float max = block_max(hold_logits(logits)), sum = block_sum(own_sum_exp(logits, max));
  if (threadIdx.x == 0) {
    a.max[row] = max;
    a.sum_exp[row] = sum;
    a.loss[row] = mine && weight != 0 ? weight * (logf(sum) + max - at_target) : 0.0f;
  }
  if (!a.want_grad) return;
  const float factor = loss_scale(a) * weight;
  put_logit_grads(logits, {.max = max,
                           .factor = factor / sum,
                           .at_target = factor * (expf(at_target - max) / sum - 1.0f),
                           .target = mine && factor != 0 ? static_cast<int>(target) : -1});
}

/// Rows of a team so that reading w and b costs at most 1/64 of what is read and written; no more than there
/// are, since a team passes the barriers of each.
int64_t rows_of_team(const NormArgs& a) {
  const int64_t rows = int64_t{16} * (a.b == nullptr ? 1 : 2) * (a.residual == nullptr ? 2 : 1);
  return a.rows > 0 && a.rows < rows ? a.rows : rows;
}

}  // namespace

bool launch_team_norm(cudaStream_t stream, Storage storage, const NormArgs& args) {
  if (args.part.of != 1) return false;  // rows of a part are heads, which are short
  bool launched = false;
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    const int64_t vectors = args.columns / kPer<T>, size = rows_of_team(args);
    if (!wide_rows<T>(args.columns, args.x, args.y, args.sum, args.residual, args.w, args.b)) return;
    if (!team_holds<kHeldByTeam>(vectors) || args.rows > kMaxGrid) return;
    const TeamCut cut{team_warps<kHeldByTeam>(vectors), size, blocks_for(args.rows, size)};
    launch(stream, cut.grid(), team_norm<T>, args, cut);
    launched = true;
  });
  return launched;
}

bool launch_team_norm_grad(cudaStream_t stream, Storage storage, const NormGradArgs& args,
                           const NormWeightGrads& weights, void* workspace) {
  if (args.part.of != 1) return false;  // as in launch_team_norm()
  bool launched = false;
  const bool centred = args.mean != nullptr, wanted = weights.dw != nullptr || weights.db != nullptr;
  const int sums = centred ? 2 : 1;
  float* const partial = wanted ? static_cast<float*>(workspace) : nullptr;
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    const int64_t vectors = args.columns / kPer<T>;
    const RowCut rows = norm_grad_cut(args.rows, sums);
    if (!wide_rows<T>(args.columns, args.dx, args.dy, args.x, args.w, args.add)) return;
    if (!team_holds<kHeldByTeam>(vectors)) return;
    const TeamCut cut{team_warps<kHeldByTeam>(vectors), rows.size, rows.blocks};
    launch(stream, cut.grid(), centred ? team_norm_grad<T, true> : team_norm_grad<T, false>, args, cut,
           partial);
    launched = true;
  });
  if (launched && wanted)
    launch_add_partials(stream, {.to = {weights.dw, weights.db},
                                 .partial = partial,
                                 .parts = norm_grad_cut(args.rows, sums).blocks,
                                 .columns = args.columns,
                                 .sums = sums});
  return launched;
}

bool launch_softmax_loss(cudaStream_t stream, Storage storage, const SoftmaxLossArgs& args) {
  bool launched = false;
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    if (!wide_rows<T>(args.stride, args.logits) || args.stride > kMaxGrid) return;
    const size_t bytes = static_cast<size_t>(args.stride) * sizeof(T);
    const int threads = threads_for(args.stride / kPer<T>, kLossThreads);
    if (bytes <= kMostHeld)
      launch(stream, {args.rows, threads, bytes}, softmax_loss<T, true>, args);
    else
      launch(stream, {args.rows, threads}, softmax_loss<T, false>, args);
    launched = true;
  });
  return launched;
}

}  // namespace megalith::cuda
