#include "libcore/hash/sha256.h"

#include <nettle/sha2.h>

#include "libcore/base/text.h"

namespace megalith {
namespace {

sha256_ctx* context_in(std::array<std::byte, 112>& bytes) {
  static_assert(sizeof(sha256_ctx) <= sizeof bytes && alignof(sha256_ctx) <= alignof(uint64_t));
  return reinterpret_cast<sha256_ctx*>(bytes.data());
}

}  // namespace

Sha256::Sha256() {
  sha256_init(context_in(context_));
}

void Sha256::update(const void* data, size_t bytes) {
  sha256_update(context_in(context_), bytes, static_cast<const uint8_t*>(data));
}

std::string Sha256::hex() {
  std::array<uint8_t, SHA256_DIGEST_SIZE> digest;
  sha256_digest(context_in(context_), digest.size(), digest.data());
  std::string text;
  for (const uint8_t byte : digest) append_hex(text, byte, 2);
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex();
}

}  // namespace megalith
