#pragma once

#include <algorithm>

#include "libcore/ops/cuda/kernel_tools.h"

/// What the kernels share that read rows in vectors of 16 bytes: these vectors, the dropout mask of a row,
/// and teams of threads that hold a row in registers.
namespace megalith::cuda {

/// The number of elements in 16 bytes.
template <class T>
constexpr int kPer = static_cast<int>(16 / sizeof(T));
template <class T>
using Wide = Vector<kPer<T>, T>;

template <class T>
__device__ Wide<T> wide_at(const T* place) {
  return vector_at<kPer<T>>(place);
}

/// The numbers of a vector, for arithmetic.
template <int kWide>
struct Floats {
  float at[kWide];
};
template <int kWide, class T>
__device__ Floats<kWide> widened(const Vector<kWide, T>& from) {
  Floats<kWide> to;
  MEGALITH_UNROLL for (int k = 0; k < kWide; ++k) to.at[k] = widen(from.at[k]);
  return to;
}
template <class T, int kWide>
__device__ Vector<kWide, T> narrowed(const Floats<kWide>& from) {
  Vector<kWide, T> to;
  if constexpr (sizeof(T) == sizeof(uint16_t) && kWide % 2 == 0) {
    uint32_t pairs[kWide / 2];
    MEGALITH_UNROLL for (int k = 0; k < kWide / 2; ++k) pairs[k] =
        narrow_pair<T>(from.at[2 * k], from.at[2 * k + 1]);
    memcpy(&to, pairs, sizeof to);
  } else {
    MEGALITH_UNROLL for (int k = 0; k < kWide; ++k) to.at[k] = narrow<T>(from.at[k]);
  }
  return to;
}

/// How many of kWide numbers in fp32 one instruction moves.
template <int kWide>
inline constexpr int kFp32Step = std::min(kWide, 4);

/// kWide numbers in fp32, up to four by one instruction.
template <int kWide>
__device__ Floats<kWide> floats_at(const float* place) {
  constexpr int kStep = kFp32Step<kWide>;
  Floats<kWide> to;
  MEGALITH_UNROLL for (int k = 0; k < kWide; k += kStep) {
    const Vector<kStep, float> part = vector_at<kStep>(place + k);
    memcpy(&to.at[k], &part, sizeof part);
  }
  return to;
}
template <int kWide>
__device__ void put_floats(float* place, const Floats<kWide>& from) {
  constexpr int kStep = kFp32Step<kWide>;
  MEGALITH_UNROLL for (int k = 0; k < kWide; k += kStep) {
    Vector<kStep, float> part;
    memcpy(&part, &from.at[k], sizeof part);
    put_vector(place + k, part);
  }
}
/// Writes vector `number` of a row, or none if that is negative. The threads of a warp have adjacent numbers,
/// and all call it. Of eight numbers, a thread writes four by one instruction; so that both threads of a pair
/// together write 32 adjacent bytes each time, they exchange half of their numbers.
__device__ inline void put_floats_of_pairs(float* row, const Floats<4>& from, int number) {
  if (number >= 0) put_floats(row + int64_t{4} * number, from);
}
__device__ inline void put_floats_of_pairs(float* row, const Floats<8>& from, int number) {
  const bool odd = threadIdx.x % 2 != 0;
  const int other = __shfl_xor_sync(kWholeWarp, number, 1);
  Floats<4> first, second;
  MEGALITH_UNROLL for (int k = 0; k < 4; ++k) {
    const float got = __shfl_xor_sync(kWholeWarp, odd ? from.at[k] : from.at[4 + k], 1);
    first.at[k] = odd ? got : from.at[k];
    second.at[k] = odd ? from.at[4 + k] : got;
  }
  if (number < 0) return;
  if (other < 0) return put_floats(row + int64_t{8} * number, from);
  float* const place = row + int64_t{8} * (odd ? other : number) + (odd ? 4 : 0);
  put_floats(place, first);
  put_floats(place + 8, second);
}
template <int kWide>
__device__ void add_to(Floats<kWide>& sums, const Floats<kWide>& more) {
  MEGALITH_UNROLL for (int k = 0; k < kWide; ++k) sums.at[k] += more.at[k];
}

/// Whether rows of these tensors can be read in vectors of 16 bytes.
template <class T, class... Data>
bool wide_rows(int64_t columns, const Data*... data) {
  return columns % kPer<T> == 0 && aligned16(data...);
}
/// A kernel's template argument: the elements that a thread takes at once.
template <int kWide>
struct Width {
  static constexpr int kElements = kWide;
};
/// Calls f with the width of 16 bytes or, if `wide` is false, of one element.
template <class T, class F>
void with_width(bool wide, const F& f) {
  if (wide)
    f(Width<kPer<T>>{});
  else
    f(Width<1>{});
}

/// The threads of a block that takes one row: those that the row's vectors need, up to `most`.
inline int threads_for(int64_t vectors, int most = kThreads) {
  const int64_t warps = blocks_for(vectors, 32);
  return static_cast<int>(warps < 1 ? 32 : warps * 32 < most ? warps * 32 : most);
}

/// The dropout mask of one row.
struct RowMask {
  MaskKey key;
  int64_t sample, position;
};
__device__ inline RowMask row_mask(const DropoutMask& mask, int64_t row) {
  // A grid has fewer than 2^31 rows, and 32 bits divide much faster than 64.
  const auto number = static_cast<uint32_t>(row), batch = static_cast<uint32_t>(mask.batch);
  return {mask.key, mask.samples[number % batch], mask.positions.at(number / batch)};
}
/// Multiplies the numbers of columns 4 quad, 4 quad + 1, … by their factors. One call of Philox gives four.
template <int kWide>
__device__ void drop(Floats<kWide>& numbers, const RowMask& mask, uint64_t quad) {
  MEGALITH_UNROLL for (int i = 0; i < kWide / 4; ++i) {
    const Words words = mask_words(mask.key, mask.sample, mask.position, quad + static_cast<uint64_t>(i));
    MEGALITH_UNROLL for (int k = 0; k < 4; ++k) numbers.at[4 * i + k] *= mask_factor(mask.key, words.word[k]);
  }
}

// ---- teams

constexpr int kTeamThreads = 512;  // the most threads of a block of teams

/// Teams of `warps` warps. Each takes `rows` adjacent rows, one after the other.
struct TeamCut {
  int warps;
  int64_t rows, teams;
  int teams_of_block() const { return warps < kThreads / 32 ? kThreads / 32 / warps : 1; }
  Grid grid() const { return {blocks_for(teams, teams_of_block()), teams_of_block() * warps * 32}; }
};
/// The warps of a team whose threads hold kHeld vectors of a row each.
template <int kHeld>
int team_warps(int64_t vectors) {
  return static_cast<int>(blocks_for(vectors, int64_t{32} * kHeld));
}
/// Whether one team can hold the row.
template <int kHeld>
bool team_holds(int64_t vectors) {
  return vectors > 0 && vectors <= int64_t{kTeamThreads} * kHeld;
}

/// A thread's place in its team, and the team's rows.
struct TeamPlace {
  int warps, width, lane;  // width: threads of the team
  int64_t team, begin, end;
  __device__ TeamPlace(const TeamCut& cut, int64_t all_rows)
      : warps(cut.warps),
        width(32 * cut.warps),
        lane(static_cast<int>(threadIdx.x) % width),
        team(0),
        begin(0),
        end(0) {
    team =
        int64_t{blockIdx.x} * (static_cast<int>(blockDim.x) / width) + static_cast<int>(threadIdx.x) / width;
    begin = team * cut.rows;
    end = begin + cut.rows < all_rows ? begin + cut.rows : all_rows;
  }
};

/// The vectors lane, lane + width, … of a row.
struct RowShare {
  int lane, width, vectors;
  __device__ bool has(int j) const { return lane + j * width < vectors; }
  __device__ int64_t vector(int j) const { return lane + j * width; }
};
/// The thread's share of a row; nothing if the row is not the team's.
__device__ inline RowShare share_of(const TeamPlace& place, int64_t row, int64_t vectors) {
  return {place.lane, place.width, row < place.end ? static_cast<int>(vectors) : 0};
}

template <class T, int kHeld>
__device__ void hold(Wide<T> (&held)[kHeld], const T* row, const RowShare& share) {
  MEGALITH_UNROLL for (int j = 0; j < kHeld; ++j) held[j] =
      share.has(j) ? wide_at(row + share.vector(j) * kPer<T>) : Wide<T>{};
}

/// Returns the sums over a team's threads in every thread. All threads of the block must call it: all teams
/// have the same size.
template <int kNumbers>
__device__ Floats<kNumbers> team_sums(Floats<kNumbers> numbers, int warps) {
  MEGALITH_UNROLL for (int n = 0; n < kNumbers; ++n) numbers.at[n] = warp_sum(numbers.at[n]);
  if (warps == 1) return numbers;
  __shared__ float warp_sums[kTeamThreads / 32][kNumbers];
  const int warp = static_cast<int>(threadIdx.x) / 32, first = warp / warps * warps;
  __syncthreads();  // threads may still be reading the sums of an earlier call
  if (threadIdx.x % 32 == 0)
    MEGALITH_UNROLL for (int n = 0; n < kNumbers; ++n) warp_sums[warp][n] = numbers.at[n];
  __syncthreads();
  Floats<kNumbers> sums = {};
  for (int i = first; i < first + warps; ++i)
    MEGALITH_UNROLL for (int n = 0; n < kNumbers; ++n) sums.at[n] += warp_sums[i][n];
  return sums;
}
__device__ inline float team_sum(float number, int warps) {
  return team_sums(Floats<1>{{number}}, warps).at[0];
}

}  // namespace megalith::cuda
