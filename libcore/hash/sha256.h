#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// SHA-256 (FIPS 180-4) of the bytes passed to update().
class Sha256 {
 public:
  Sha256();
  void update(const void* data, size_t bytes);
  /// The hash of all bytes so far as 64 lower-case hexadecimal digits. The object cannot be used afterwards.
  std::string hex();

 private:
  // Storage for Nettle's sha256_ctx; only sha256.cpp includes that header.
  alignas(uint64_t) std::array<std::byte, 112> context_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace megalith
