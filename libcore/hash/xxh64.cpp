#include "libcore/hash/xxh64.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace megalith {
namespace {

// The specification's primes; all arithmetic is modulo 2^64, numbers are read little-endian.
constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F, kPrime3 = 0x165667B19E3779F9,
                   kPrime4 = 0x85EBCA77C2B2AE63, kPrime5 = 0x27D4EB2F165667C5;
static_assert(std::endian::native == std::endian::little, "numbers of files are little-endian");

template <class T>
T load(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint64_t round(uint64_t lane, uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

uint64_t merge(uint64_t hash, uint64_t lane) {
  return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

uint64_t finish(uint64_t hash, const unsigned char* at, size_t left) {
  for (; left >= 8; at += 8, left -= 8)
    hash = std::rotl(hash ^ round(0, load<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (left >= 4) {
    hash = std::rotl(hash ^ (load<uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4, left -= 4;
  }
  for (; left > 0; ++at, --left) hash = std::rotl(hash ^ (*at * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace

Xxh64::Xxh64(uint64_t seed)
    : seed_(seed), lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1} {}

void Xxh64::stripes(const unsigned char* at, size_t count) {
  auto [a, b, c, d] = lanes_;
  for (; count > 0; --count, at += kStripe) {
    a = round(a, load<uint64_t>(at));
    b = round(b, load<uint64_t>(at + 8));
    c = round(c, load<uint64_t>(at + 16));
    d = round(d, load<uint64_t>(at + 24));
  }
  lanes_ = {a, b, c, d};
}

void Xxh64::update(const void* data, size_t bytes) {
  if (bytes == 0) return;  // `data` may then be null, which memcpy must not be given
  const auto* at = static_cast<const unsigned char*>(data);
  const size_t held = bytes_ % kStripe;
  bytes_ += bytes;
  if (held > 0) {
    const size_t taken = std::min(bytes, kStripe - held);
    std::memcpy(rest_.data() + held, at, taken);
    at += taken, bytes -= taken;
    if (held + taken < kStripe) return;
    stripes(rest_.data(), 1);
  }
  stripes(at, bytes / kStripe);
  if (bytes % kStripe > 0) std::memcpy(rest_.data(), at + bytes / kStripe * kStripe, bytes % kStripe);
}

uint64_t Xxh64::digest() const {
  const auto [a, b, c, d] = lanes_;
  uint64_t hash = seed_ + kPrime5;
  if (bytes_ >= kStripe) {
    hash = std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
    for (const uint64_t lane : lanes_) hash = merge(hash, lane);
  }
  return finish(hash + bytes_, rest_.data(), bytes_ % kStripe);
}

uint64_t xxh64(const void* data, size_t bytes) {
  Xxh64 hash;
  hash.update(data, bytes);
  return hash.digest();
}

std::string hex64(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
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
