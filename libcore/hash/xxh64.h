#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace megalith {

/// The 64-bit hash XXH64 (Collet, "xxHash fast digest algorithm", rev. 0.1.1), for detecting accidental
/// damage, not deliberate changes. Chosen for its speed without special instructions: xxhash 0.8.1 reads 64
/// MiB at 8.3 GB/s (6.2 to 9.9, median of 6, one thread of an AMD EPYC that was also busy with other work,
/// 2026-11-24, g++ -O2), crc32 in zlib 1.2.13 at 2.8 GB/s. A copy of the object continues from the original's
/// state.
class Xxh64 {
 public:
  explicit Xxh64(uint64_t seed = 0);
  void update(const void* data, size_t bytes);
  uint64_t digest() const;  // the hash of all bytes so far

 private:
  // Storage for XXH64_state_t. Only xxh64.cpp includes xxhash.h, which takes a second to compile.
  alignas(uint64_t) std::array<std::byte, 88> state_;
};

uint64_t xxh64(const void* data, size_t bytes);  // seed 0
inline uint64_t xxh64(std::string_view text) {
  return xxh64(text.data(), text.size());
}
std::string hex64(uint64_t value);  // 16 lower-case digits
/// The value of text that hex64() wrote; nothing for any other text.
std::optional<uint64_t> parse_hex64(std::string_view digits);

}  // namespace megalith
