#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace megalith {

/// The layout of an .idx, shared by writer and reader; docs/formats/indexed.md has a table of it. All
/// integers are little-endian and unaligned. IndexedDType is the layout's code for the token type.
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

constexpr const char* name_of(IndexedDType dtype) {
  constexpr const char* kNames[] = {"",      "uint8",   "int8",    "int16", "int32",
                                    "int64", "float64", "float32", "uint16"};
  return kNames[static_cast<size_t>(dtype)];
}

constexpr bool is_floating(IndexedDType dtype) {
  return dtype == IndexedDType::kF64 || dtype == IndexedDType::kF32;
}

constexpr size_t size_of(IndexedDType dtype) {
  constexpr size_t kSizes[] = {0, 1, 1, 2, 4, 8, 8, 4, 2};
  return kSizes[static_cast<size_t>(dtype)];
}

static_assert(std::endian::native == std::endian::little, "the .idx and .bin bytes are used in place");

/// Element i of an array of T, which need not be aligned.
template <class T>
T load_unaligned(const std::byte* array, int64_t i) {
  T value;
  std::memcpy(&value, array + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

/// Megatron's DType.optimal_dtype: 16 bits if the unpadded vocabulary has fewer than 65,500 ids.
constexpr IndexedDType optimal_dtype(int64_t vocab_size) {
  return vocab_size < 65500 ? IndexedDType::kU16 : IndexedDType::kI32;
}

/// Calls `f` with a zero of the C++ type of `dtype`; returns f's result.
template <class F>
constexpr auto with_type(IndexedDType dtype, F&& f) {
  switch (dtype) {
    case IndexedDType::kU8:
      return f(uint8_t{});
    case IndexedDType::kI8:
      return f(int8_t{});
    case IndexedDType::kI16:
      return f(int16_t{});
    case IndexedDType::kI32:
      return f(int32_t{});
    case IndexedDType::kI64:
      return f(int64_t{});
    case IndexedDType::kF64:
      return f(double{});
    case IndexedDType::kF32:
      return f(float{});
    case IndexedDType::kU16:
      break;
  }
  return f(uint16_t{});
}

}  // namespace megalith
