#include "libcore/ops/cuda/row_tools.h"

// Element-wise kernels that take one row per block, in vectors of 16 bytes where the rows allow it.

namespace megalith::cuda {
namespace {

template <class T, int kWide>
__global__ void swiglu(T* y, const T* x, int64_t columns) {
  const T* const gate = x + int64_t{blockIdx.x} * 2 * columns;
  T* const out = y + int64_t{blockIdx.x} * columns;
  for (int64_t i = int64_t{kWide} * threadIdx.x; i < columns; i += int64_t{kWide} * blockDim.x) {
    const Floats<kWide> g = widened(vector_at<kWide>(gate + i));
    Floats<kWide> result = widened(vector_at<kWide>(gate + columns + i));
    MEGALITH_UNROLL for (int k = 0; k < kWide; ++k) result.at[k] *= silu(g.at[k]);
    put_vector(out + i, narrowed<T>(result));
  }
}

template <class T, int kWide>
__global__ void swiglu_grad(T* dx, const T* dy, const T* x, int64_t columns) {
  const int64_t row = blockIdx.x;
  const T *const gate = x + row * 2 * columns, *const dout = dy + row * columns;
  T* const out = dx + row * 2 * columns;  // may be x's memory
  for (int64_t i = int64_t{kWide} * threadIdx.x; i < columns; i += int64_t{kWide} * blockDim.x) {
    Floats<kWide> g = widened(vector_at<kWide>(gate + i)), u = widened(vector_at<kWide>(gate + columns + i));
    const Floats<kWide> d = widened(vector_at<kWide>(dout + i));
    MEGALITH_UNROLL for (int k = 0; k < kWide; ++k) {
      const float slope = silu_slope(g.at[k]), value = silu(g.at[k]);
      g.at[k] = d.at[k] * u.at[k] * slope;
      u.at[k] = d.at[k] * value;
    }
    put_vector(out + i, narrowed<T>(g));
    put_vector(out + columns + i, narrowed<T>(u));
  }
}

/// One row per block; a thread processes four columns at a time, whose random bits come from one Philox call:
/// those whose global numbers are 4 quad to 4 quad + 3.
template <class T>
__global__ void dropout(DropoutArgs a) {
  const int64_t row = blockIdx.x, place = row * a.columns;
  const T* const x = static_cast<const T*>(a.x) + place;
  const T* const residual = a.residual == nullptr ? nullptr : static_cast<const T*>(a.residual) + place;
  T* const y = static_cast<T*>(a.y) + place;
  const RowMask mask = a.mask.drops() ? row_mask(a.mask, row) : RowMask{};
  const int64_t end = a.first_column + a.columns;
  for (int64_t quad = a.first_column / 4 + threadIdx.x; 4 * quad < end; quad += blockDim.x) {
    Words words = {};
    if (a.mask.drops())
      words = mask_words(a.mask.key, mask.sample, mask.position, static_cast<uint64_t>(quad));
    MEGALITH_UNROLL for (int word = 0; word < 4; ++word) {
      const int64_t i = 4 * quad + word - a.first_column;
      if (i < 0 || i >= a.columns) continue;
      float value = widen(x[i]);
      if (a.mask.drops()) value *= mask_factor(a.mask.key, words.word[word]);
      if (residual != nullptr) value += widen(residual[i]);
      y[i] = narrow<T>(value);
    }
  }
}

/// The same in vectors of 16 bytes, if first_column is a multiple of 4.
template <class T>
__global__ void wide_dropout(DropoutArgs a) {
  const int64_t row = blockIdx.x, place = row * a.columns;
  const T* const x = static_cast<const T*>(a.x) + place;
  const T* const residual = a.residual == nullptr ? nullptr : static_cast<const T*>(a.residual) + place;
  const RowMask mask = a.mask.drops() ? row_mask(a.mask, row) : RowMask{};
  for (int64_t i = int64_t{kPer<T>} * threadIdx.x; i < a.columns; i += kPer<T> * blockDim.x) {
    Floats<kPer<T>> values = widened(wide_at(x + i));
    if (a.mask.drops()) drop(values, mask, static_cast<uint64_t>((a.first_column + i) / 4));
    if (residual != nullptr) add_to(values, widened(wide_at(residual + i)));
    put_vector(static_cast<T*>(a.y) + place + i, narrowed<T>(values));
  }
}

/// Copies the cosines and sines of a row to shared memory [2][half]: all heads of the row need them.
__device__ inline void share_angles(float* shared, const RopeArgs& a, int64_t row, int64_t start) {
  const int64_t angle = (a.positions.at(row) - start) * a.half;
  for (int64_t i = threadIdx.x; i < a.half; i += blockDim.x) {
    shared[i] = a.cos[angle + i];
    shared[a.half + i] = a.sin[angle + i] * a.sin_sign;
  }
  __syncthreads();
}

/// One row of one sequence per block. The value heads, the last of each group, are not rotated.
template <class T, int kWide>
__global__ void rope(RopeArgs a) {
  MEGALITH_DYNAMIC_SHARED(shared);
  const auto place = static_cast<uint32_t>(blockIdx.x), batch = static_cast<uint32_t>(a.batch);
  share_angles(shared, a, place / batch, a.starts == nullptr ? 0 : a.starts[place]);
  const auto rotated = static_cast<uint32_t>(a.group_heads - 1),
             vectors = static_cast<uint32_t>(a.half / kWide);
  const uint32_t heads = static_cast<uint32_t>(a.sequence_heads / a.group_heads) * rotated;
  T* const row = static_cast<T*>(a.qkv) + place * a.sequence_heads * a.head;
  for (uint32_t i = threadIdx.x; i < heads * vectors; i += blockDim.x) {
    const uint32_t number = i / vectors, column = i % vectors * kWide;
    T* const first = row + (number + number / rotated) * a.head + column;
    const Floats<kWide> c = floats_at<kWide>(shared + column), s = floats_at<kWide>(shared + a.half + column);
    Floats<kWide> u = widened(vector_at<kWide>(first)), v = widened(vector_at<kWide>(first + a.half));
    MEGALITH_UNROLL for (int k = 0; k < kWide; ++k) {
      const float turned = u.at[k] * c.at[k] - v.at[k] * s.at[k];
      v.at[k] = v.at[k] * c.at[k] + u.at[k] * s.at[k];
      u.at[k] = turned;
    }
    put_vector(first, narrowed<T>(u));
    put_vector(first + a.half, narrowed<T>(v));
  }
}

}  // namespace

void launch_swiglu(cudaStream_t stream, Storage storage, void* y, const void* x, int64_t rows,
                   int64_t columns) {
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    with_width<T>(wide_rows<T>(columns, x, y), [&](auto width) {
      constexpr int kWide = decltype(width)::kElements;
      launch(stream, {rows, threads_for(columns / kWide)}, swiglu<T, kWide>, static_cast<T*>(y),
             static_cast<const T*>(x), columns);
    });
  });
}

void launch_swiglu_grad(cudaStream_t stream, Storage storage, const SwiGluGradArgs& a) {
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    with_width<T>(wide_rows<T>(a.columns, a.dx, a.dy, a.x), [&](auto width) {
      constexpr int kWide = decltype(width)::kElements;
      launch(stream, {a.rows, threads_for(a.columns / kWide)}, swiglu_grad<T, kWide>, static_cast<T*>(a.dx),
             static_cast<const T*>(a.dy), static_cast<const T*>(a.x), a.columns);
    });
  });
}

void launch_dropout(cudaStream_t stream, Storage storage, const DropoutArgs& args) {
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    if (args.first_column % 4 == 0 && wide_rows<T>(args.columns, args.x, args.y, args.residual))
      launch(stream, {args.rows, threads_for(args.columns / kPer<T>)}, wide_dropout<T>, args);
    else
      launch(stream, args.rows, 0, dropout<T>, args);
  });
}

void launch_rope(cudaStream_t stream, Storage storage, const RopeArgs& args) {
  const int64_t heads = args.sequence_heads / args.group_heads * (args.group_heads - 1);
  const size_t angles = static_cast<size_t>(2 * args.half) * sizeof(float);
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    with_width<T>(wide_rows<T>(args.half, args.qkv) && args.head % kPer<T> == 0, [&](auto width) {
      constexpr int kWide = decltype(width)::kElements;
      launch(stream, {args.rows * args.batch, threads_for(heads * args.half / kWide), angles}, rope<T, kWide>,
             args);
    });
  });
}

}  // namespace megalith::cuda
