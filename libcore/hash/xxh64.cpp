#include "libcore/hash/xxh64.h"

#include <charconv>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "libcore/base/text.h"

namespace megalith {

Xxh64::Xxh64(uint64_t seed) {
  static_assert(sizeof(XXH64_state_t) <= sizeof state_ && alignof(XXH64_state_t) <= alignof(uint64_t));
  XXH64_reset(reinterpret_cast<XXH64_state_t*>(state_.data()), seed);
}

void Xxh64::update(const void* data, size_t bytes) {
  XXH64_update(reinterpret_cast<XXH64_state_t*>(state_.data()), data, bytes);
}

uint64_t Xxh64::digest() const {
  return XXH64_digest(reinterpret_cast<const XXH64_state_t*>(state_.data()));
}

uint64_t xxh64(const void* data, size_t bytes) {
  return XXH64(data, bytes, 0);
}

std::string hex64(uint64_t value) {
  std::string text;
  append_hex(text, value, 16);
  return text;
}

std::optional<uint64_t> parse_hex64(std::string_view digits) {
  uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value, 16);
  if (error != std::errc() || at != end || hex64(value) != digits) return std::nullopt;
  return value;
}

}  // namespace megalith
