// The emulated instructions of libcore/ops/cuda/mma.h against naive loops over the layouts that the PTX ISA
// gives: "Matrix Fragments for mma.m16n8k16 with floating point types" and "ldmatrix".
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/ops/cuda/mma.h"
#include "tests/emulator/controls.h"
#include "tests/emulator/report.h"

namespace megalith::cuda {
namespace {

constexpr int kWarp = 32;
const auto kEndsMisused = testing::ExitedWithCode(emulator::kMisused);

/// What a kernel of one block writes to the n floats that it gets, with the threads in this order. `in`
/// follows them in memory.
struct Block {
  int threads = kWarp;
  size_t shared = 4096;
  std::vector<float> in = {};
  unsigned order = 1;

  std::vector<float> run(size_t n, const std::function<void(float*)>& kernel) const {
    emulator::controls().order = order;
    void* memory = nullptr;
    cudaMalloc(&memory, (n + in.size()) * sizeof(float));
    float* const out = static_cast<float*>(memory);
    cudaMemcpyAsync(out + n, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice, nullptr);
    run_grid(nullptr, 1, threads, shared, [=] { kernel(out); });
    std::vector<float> result(n);
    cudaMemcpyAsync(result.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost, nullptr);
    cudaStreamSynchronize(nullptr);
    cudaFree(memory);
    return result;
  }
};

/// Numbers that both 16-bit types hold exactly, as do their products and sums.
float number(size_t i) {
  return static_cast<float>(static_cast<int>(i * 37 % 61) - 30) / 8;
}

template <class T>
uint32_t pair(float first, float second) {
  return narrow<T>(first).bits | static_cast<uint32_t>(narrow<T>(second).bits) << 16;
}

/// sums [16, 8] = number(row 8 + column) + a b, by the ISA's formulas for element i of a thread's fragment.
template <class T>
void multiply_one_tile(float* sums) {
  const int group = static_cast<int>(threadIdx.x) / 4, member = static_cast<int>(threadIdx.x) % 4;
  const auto a_at = [&](int i) {
    const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8,
              column = member * 2 + (i & 1) + (i >= 4 ? 8 : 0);
    return number(static_cast<size_t>(row) * 16 + static_cast<size_t>(column));
  };
  const auto b_at = [&](int i) {
    const int row = member * 2 + (i & 1) + (i >= 2 ? 8 : 0), column = group;
    return number(1000 + static_cast<size_t>(row) * 8 + static_cast<size_t>(column));
  };
  uint32_t a[4], b[2];
  for (int i = 0; i < 4; ++i) a[i] = pair<T>(a_at(2 * i), a_at(2 * i + 1));
  for (int i = 0; i < 2; ++i) b[i] = pair<T>(b_at(2 * i), b_at(2 * i + 1));
  const auto place = [&](int i) { return (i < 2 ? group : group + 8) * 8 + member * 2 + (i & 1); };
  float mine[4];
  for (int i = 0; i < 4; ++i) mine[i] = number(static_cast<size_t>(place(i)));
  multiply_add<T>(mine, a, b[0], b[1]);
  for (int i = 0; i < 4; ++i) sums[place(i)] = mine[i];
}

TEST(EmulatedMatrices, MultiplyAsTheIsaSays) {
  std::vector<float> want(16 * 8);
  for (size_t row = 0; row < 16; ++row)
    for (size_t column = 0; column < 8; ++column) {
      float& sum = want[row * 8 + column] = number(row * 8 + column);
      for (size_t k = 0; k < 16; ++k) sum += number(row * 16 + k) * number(1000 + k * 8 + column);
    }
  for (const unsigned order : {2U, 3U}) {
    EXPECT_EQ((Block{.order = order}.run(want.size(), multiply_one_tile<Bf16>)), want);
    EXPECT_EQ((Block{.order = order}.run(want.size(), multiply_one_tile<Half>)), want);
  }
}

/// The elements that each thread of the last warp receives, in its order. Row i of matrix m begins at element
/// (8 m + i) * stride of shared memory, where the value of each element is its index.
template <int kCount, bool kTransposed>
std::vector<float> loaded(int stride) {
  return Block{.threads = 2 * kWarp, .shared = 32 * 2 * static_cast<size_t>(stride)}.run(
      kWarp * kCount * 2, [=](float* out) {
        uint16_t* const shared = reinterpret_cast<uint16_t*>(dynamic_shared());
        for (int i = static_cast<int>(threadIdx.x); i < 32 * stride; i += 2 * kWarp)
          shared[i] = static_cast<uint16_t>(i);
        __syncthreads();
        const int lane = static_cast<int>(threadIdx.x) % kWarp;
        uint32_t to[kCount];
        load_matrices<kCount, kTransposed>(to, shared + lane * stride);
        if (threadIdx.x < kWarp) return;
        for (int i = 0; i < kCount * 2; ++i)
          out[lane * kCount * 2 + i] = static_cast<float>(to[i / 2] >> (i % 2 ? 16 : 0) & 0xffff);
      });
}

template <int kCount, bool kTransposed>
void expect_loads() {
  constexpr int kStride = 24;
  std::vector<float> want;
  for (int lane = 0; lane < kWarp; ++lane)
    for (int matrix = 0; matrix < kCount; ++matrix)
      for (int half = 0; half < 2; ++half) {
        const int across = lane / 4, along = lane % 4 * 2 + half;
        const int row = kTransposed ? along : across, column = kTransposed ? across : along;
        want.push_back(static_cast<float>((8 * matrix + row) * kStride + column));
      }
  EXPECT_EQ((loaded<kCount, kTransposed>(kStride)), want);
}

TEST(EmulatedMatrices, AreLoadedAsTheIsaSays) {
  expect_loads<1, false>();
  expect_loads<2, false>();
  expect_loads<4, false>();
  expect_loads<1, true>();
  expect_loads<2, true>();
  expect_loads<4, true>();
}

// Shared memory has 32 banks of four bytes. Eight rows of 16 bytes are read at once if they use each once.
TEST(EmulatedMatrices, CountTheConflictsOfTheirRows) {
  const auto conflicts = [](int stride) {
    const long before = emulator::controls().counts.bank_conflicts;
    loaded<4, false>(stride);
    return emulator::controls().counts.bank_conflicts - before;
  };
  EXPECT_EQ(conflicts(72), 0);          // 36 words: the rows begin in banks 0, 4, 8, ..., 28
  EXPECT_EQ(conflicts(64), 2 * 4 * 7);  // 32 words: all rows of the 4 matrices of 2 warps begin in bank 0
  EXPECT_EQ(conflicts(80), 2 * 4 * 1);  // 40 words: two rows begin in each of banks 0, 8, 16, 24
}

using EmulatedMatricesDeathTest = testing::Test;

TEST(EmulatedMatricesDeathTest, EndIfTheyAreMisused) {
  const auto load_at = [](size_t offset) {
    Block{.shared = 1024}.run(1, [=](float*) {
      uint32_t to[1];
      load_matrices<1, false>(to, reinterpret_cast<char*>(dynamic_shared()) + offset);
    });
  };
  EXPECT_EXIT(load_at(8), kEndsMisused, "ldmatrix: a row that is not aligned");
  EXPECT_EXIT(load_at(1024), kEndsMisused, "an address outside of shared memory");
  const auto some_threads = [] {
    Block{}.run(1, [](float*) {
      float sums[4] = {};
      if (threadIdx.x < 16) multiply_add<Bf16>(sums, {0, 0, 0, 0}, 0, 0);
    });
  };
  EXPECT_EXIT(some_threads(), kEndsMisused, "threads of a warp wait at different places");
}

/// Thread i copies in[i] and, in a second group, in[32 + i] to shared memory. Then out holds what the first
/// `groups` places hold after a wait for all but kLeft groups, from another thread's place.
template <int kLeft>
std::vector<float> copied(unsigned order) {
  std::vector<float> in(64);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  return Block{.in = in, .order = order}.run(64, [](float* out) {
    float* const shared = dynamic_shared();
    const unsigned i = threadIdx.x;
    for (const unsigned half : {0U, 32U}) {
      copy_async<4>(shared + half + i, out + 64 + half + i, true);
      commit_copies();
    }
    wait_for_copies<kLeft>();
    __syncthreads();
    for (const unsigned half : {0U, 32U}) out[half + i] = shared[half + (i + 1) % 32];
    __syncthreads();
    wait_for_copies<0>();
  });
}

TEST(EmulatedCopies, ArePoisonUntilTheirGroupIsAwaited) {
  for (const unsigned order : {2U, 3U}) {
    const std::vector<float> all = copied<0>(order), first = copied<1>(order), none = copied<2>(order);
    for (size_t i = 0; i < 64; ++i) {
      const size_t next = i / 32 * 32 + (i + 1) % 32;
      const auto want = static_cast<float>(next);
      EXPECT_EQ(all[i], want);
      EXPECT_TRUE(i < 32 ? first[i] == want : std::isnan(first[i]));
      EXPECT_TRUE(std::isnan(none[i]));
    }
  }
}

TEST(EmulatedCopies, FillWithZerosWhatIsNotThere) {
  const std::vector<float> got = Block{.in = std::vector<float>(8, 5)}.run(8, [](float* out) {
    float* const shared = dynamic_shared();
    if (threadIdx.x < 2)
      copy_async<16>(shared + 4 * threadIdx.x, out + 8 + 4 * threadIdx.x, threadIdx.x == 1);
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = shared[threadIdx.x];
  });
  EXPECT_EQ(got, (std::vector<float>{0, 0, 0, 0, 5, 5, 5, 5}));
}

TEST(EmulatedCopiesDeathTest, EndIfTheyAreMisused) {
  const auto copy = [](size_t to, size_t from, bool wait) {
    Block{.shared = 256, .in = std::vector<float>(8)}.run(4, [=](float* out) {
      copy_async<16>(reinterpret_cast<char*>(dynamic_shared()) + to, out + 4 + from, true);
      commit_copies();
      if (wait) wait_for_copies<0>();
    });
  };
  EXPECT_EXIT(copy(8, 0, true), kEndsMisused, "cp.async: an address that is not aligned");
  EXPECT_EXIT(copy(0, 1, true), kEndsMisused, "cp.async: an address that is not aligned");
  EXPECT_EXIT(copy(256, 0, true), kEndsMisused, "an address outside of shared memory");
  EXPECT_EXIT(copy(0, 0, false), kEndsMisused, "a thread ends before its copies");
}

TEST(EmulatedBlocks, HaveDifferentSizesInOneProcess) {
  for (const int threads : {32, 128, 64}) {
    const std::vector<float> got = Block{.threads = threads}.run(1, [](float* out) {
      const bool last = __syncthreads_or(threadIdx.x == blockDim.x - 1);
      if (last && threadIdx.x == 0) out[0] = static_cast<float>(blockDim.x);
    });
    EXPECT_EQ(got[0], static_cast<float>(threads));
  }
}

}  // namespace
}  // namespace megalith::cuda
