#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "libcore/base/machine/isa.h"

namespace megalith {

/// Takes `count` blocks of 64 bytes into the state (FIPS 180-4, 6.2.2).
using Sha256Blocks = void (*)(std::array<uint32_t, 8>& state, const uint8_t* blocks, size_t count);
Sha256Blocks sha256_kernel(Isa isa);

/// SHA-256 (FIPS 180-4) of bytes that update() gets one after the other.
class Sha256 {
 public:
  void update(const void* data, size_t bytes);
  /// 64 lower-case hexadecimal digits of everything so far; the object is used up.
  std::string hex();

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_ = {};
  uint64_t bytes_ = 0;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace megalith
