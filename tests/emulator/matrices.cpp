#include "tests/emulator/matrices.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/emulator/block.h"
#include "tests/emulator/controls.h"
#include "tests/emulator/report.h"

namespace megalith::emulator {
namespace {

constexpr size_t kWarp = 32, kRow = 8, kRowBytes = 16;

/// One of the two elements of a register.
uint16_t half_of(uint32_t word, size_t half) {
  return static_cast<uint16_t>(word >> 16 * half);
}

struct Product {
  float* sums;
  const uint32_t *a, *b;
  Widen widen;
};

/// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point types".
void multiply(void* const* lanes) {
  const auto lane = [&](size_t i) -> const Product& { return *static_cast<const Product*>(lanes[i]); };
  float a[16][16], b[16][8];
  ++controls().counts.matrix_products;
  for (size_t row = 0; row < 16; ++row)
    for (size_t k = 0; k < 16; ++k)
      a[row][k] = lane(0).widen(half_of(lane(row % 8 * 4 + k % 8 / 2).a[row / 8 + k / 8 * 2], k % 2));
  for (size_t k = 0; k < 16; ++k)
    for (size_t column = 0; column < 8; ++column)
      b[k][column] = lane(0).widen(half_of(lane(column * 4 + k % 8 / 2).b[k / 8], k % 2));
  for (size_t row = 0; row < 16; ++row) {
    float sums[8] = {};
    for (size_t k = 0; k < 16; ++k)
      for (size_t column = 0; column < 8; ++column) sums[column] += a[row][k] * b[k][column];
    for (size_t column = 0; column < 8; ++column)
      lane(row % 8 * 4 + column / 2).sums[row / 8 * 2 + column % 2] += sums[column];
  }
}

struct Load {
  uint32_t* to;
  size_t count;
  bool transposed;
  const std::byte* row;
};

/// The additional passes over shared memory that rows in the same banks need. A pass reads 128 bytes.
long conflicts(const std::array<const std::byte*, kRow>& rows) {
  std::array<long, 8> used{};
  for (size_t i = 0; i < kRow; ++i)
    if (std::find(rows.begin(), rows.begin() + i, rows[i]) == rows.begin() + i)
      ++used[EmulatedBlock::running().shared_place(rows[i], kRowBytes) / kRowBytes % used.size()];
  return *std::max_element(used.begin(), used.end()) - 1;
}

void load_matrix(void* const* lanes, size_t matrix) {
  const auto lane = [&](size_t i) -> const Load& { return *static_cast<const Load*>(lanes[i]); };
  std::array<const std::byte*, kRow> rows{};
  for (size_t i = 0; i < kRow; ++i) rows[i] = lane(matrix * kRow + i).row;
  for (long i = conflicts(rows); i > 0; --i) ++controls().counts.bank_conflicts;
  for (size_t i = 0; i < kWarp; ++i)
    for (size_t half = 0; half < 2; ++half) {
      const size_t across = i / 4, along = i % 4 * 2 + half;
      const size_t row = lane(i).transposed ? along : across, column = lane(i).transposed ? across : along;
      std::memcpy(reinterpret_cast<std::byte*>(lane(i).to + matrix) + 2 * half, rows[row] + 2 * column, 2);
    }
}

void load(void* const* lanes) {
  for (size_t matrix = 0; matrix < static_cast<const Load*>(lanes[0])->count; ++matrix)
    load_matrix(lanes, matrix);
}

}  // namespace

void multiply_matrices(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Widen widen) {
  Product product{sums, a, b, widen};
  EmulatedBlock::running().together(multiply, &product);
}

void load_matrices(uint32_t* to, size_t count, bool transposed, const void* row) {
  Load one{to, count, transposed, static_cast<const std::byte*>(row)};
  if (reinterpret_cast<uintptr_t>(row) % kRowBytes != 0) end_with("ldmatrix: a row that is not aligned");
  EmulatedBlock::running().together(load, &one);
}

void copy_async(void* to, const void* from, size_t bytes) {
  for (const void* const address : {static_cast<const void*>(to), from})
    if (reinterpret_cast<uintptr_t>(address) % bytes != 0)
      end_with("cp.async: an address that is not aligned");
  EmulatedBlock& block = EmulatedBlock::running();
  block.shared_place(to, bytes);
  const void* const instruction = __builtin_return_address(0);
  block.note_access(to, bytes, instruction);
  if (from != nullptr) block.note_access(from, bytes, instruction);
  block.copies().start(to, from, bytes);
}

}  // namespace megalith::emulator
