#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// SHA-256 (FIPS 180-4) of bytes that update() gets one after the other.
class Sha256 {
 public:
  Sha256();
  void update(const void* data, size_t bytes);
  /// 64 lower-case hexadecimal digits of everything so far; the object is used up.
  std::string hex();

 private:
  // Nettle's sha256_ctx, whose header only sha256.cpp reads.
  alignas(uint64_t) std::array<std::byte, 112> context_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace megalith
