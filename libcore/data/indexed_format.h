#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace megalith {

/// The .idx layout that writer and reader share; docs/formats/indexed.md has the table. All integers
/// little-endian, unaligned.
enum class IndexedDType : uint8_t {
  kU8 = 1,
  kI8 = 2,
  kI16 = 3,
  kI32 = 4,
  kI64 = 5,
  kF64 = 6,
  kF32 = 7,
  kU16 = 8
};

constexpr std::array<char, 9> kIndexedMagic = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
constexpr uint64_t kIndexedVersion = 1;
constexpr size_t kIndexedHeaderBytes = 34;  // magic 9, version 8, dtype 1, sequences 8, document entries 8

constexpr bool is_indexed_dtype(uint8_t code) {
  return code >= 1 && code <= 8;
}

constexpr size_t size_of(IndexedDType dtype) {
  constexpr size_t kSizes[] = {0, 1, 1, 2, 4, 8, 8, 4, 2};
  return kSizes[static_cast<size_t>(dtype)];
}

/// Megatron's DType.optimal_dtype: 16 bits when the unpadded vocabulary has fewer than 65,500 ids.
constexpr IndexedDType optimal_dtype(int64_t vocab_size) {
  return vocab_size < 65500 ? IndexedDType::kU16 : IndexedDType::kI32;
}

}  // namespace megalith
