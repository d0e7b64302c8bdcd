#include "libcore/ops/cuda/kernel_tools.h"

// Lines at a distance, one warp per line, in vectors of 16 bytes where all lines allow it.

namespace megalith::cuda {
namespace {

constexpr int kLinesOfBlock = kThreads / 32;

__device__ inline int64_t line_of_warp() {
  return int64_t{blockIdx.x} * kLinesOfBlock + threadIdx.x / 32;
}

template <class T>
__global__ void copy_lines(LineCopy a) {
  const int64_t line = line_of_warp();
  if (line >= a.lines) return;
  T* const to = reinterpret_cast<T*>(static_cast<char*>(a.to) + line * a.to_stride);
  const T* const from = reinterpret_cast<const T*>(static_cast<const char*>(a.from) + line * a.from_stride);
  for (int64_t i = threadIdx.x % 32; i < a.bytes / static_cast<int64_t>(sizeof(T)); i += 32) to[i] = from[i];
}

template <class T, int kWide>
__global__ void add_lines(LineSum a) {
  const int64_t line = line_of_warp();
  if (line >= a.lines) return;
  T* const to = static_cast<T*>(a.to) + line * a.to_stride;
  const T* const from = static_cast<const T*>(a.from) + line * a.columns;
  for (int64_t i = kWide * (threadIdx.x % 32); i < a.columns; i += 32 * kWide) {
    Vector<kWide, T> sum = vector_at<kWide>(to + i);
    const Vector<kWide, T> more = vector_at<kWide>(from + i);
    MEGALITH_UNROLL for (int k = 0; k < kWide; ++k) sum.at[k] =
        narrow<T>(widen(sum.at[k]) + widen(more.at[k]));
    put_vector(to + i, sum);
  }
}

}  // namespace

void launch_copy_lines(cudaStream_t stream, const LineCopy& args) {
  using Wide = Vector<4, uint32_t>;
  const auto unit = static_cast<uint64_t>(args.to_stride | args.from_stride | args.bytes) |
                    reinterpret_cast<uintptr_t>(args.to) | reinterpret_cast<uintptr_t>(args.from);
  const int64_t blocks = blocks_for(args.lines, kLinesOfBlock);
  if (unit % sizeof(Wide) == 0)
    launch(stream, blocks, 0, copy_lines<Wide>, args);
  else
    launch(stream, blocks, 0, copy_lines<uint16_t>, args);
}

void launch_add_lines(cudaStream_t stream, Storage storage, const LineSum& args) {
  const int64_t blocks = blocks_for(args.lines, kLinesOfBlock);
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    constexpr int kWide = static_cast<int>(16 / sizeof(T));
    if ((args.to_stride | args.columns) % kWide == 0 && aligned16(args.to, args.from))
      launch(stream, blocks, 0, add_lines<T, kWide>, args);
    else
      launch(stream, blocks, 0, add_lines<T, 1>, args);
  });
}

}  // namespace megalith::cuda
