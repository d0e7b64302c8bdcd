#include "libcore/hash/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "libcore/hash/sha256_rounds.h"

namespace megalith {
namespace {

constexpr size_t kBlock = 64;
uint32_t big_endian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

void compress(std::array<uint32_t, 8>& state, const uint8_t* block) {
  std::array<uint32_t, 64> w;
  for (size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (size_t t = 16; t < 64; ++t) {
    const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t t = 0; t < 64; ++t) {
    const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kSha256Rounds[t] + w[t];
    const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t words[] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += words[i];
}

void blocks_generic(std::array<uint32_t, 8>& state, const uint8_t* blocks, size_t count) {
  for (; count > 0; --count, blocks += kBlock) compress(state, blocks);
}

}  // namespace

Sha256Blocks sha256_kernel(Isa isa) {
  return has_sha(isa) ? MEGALITH_IF_SIMD(sha256_blocks_sha) : blocks_generic;
}

void Sha256::update(const void* data, size_t bytes) {
  static const Sha256Blocks take = sha256_kernel(chosen_isa());
  const auto* at = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const size_t filled = bytes_ % kBlock;
    if (filled == 0 && bytes >= kBlock) {
      const size_t whole = bytes / kBlock * kBlock;
      take(state_, at, whole / kBlock);
      at += whole, bytes -= whole, bytes_ += whole;
      continue;
    }
    const size_t n = std::min(bytes, kBlock - filled);
    std::memcpy(block_.data() + filled, at, n);
    at += n, bytes -= n, bytes_ += n;
    if (bytes_ % kBlock == 0) take(state_, block_.data(), 1);
  }
}

std::string Sha256::hex() {
  const uint64_t bits = 8 * bytes_;
  const uint8_t one = 0x80, zero = 0;
  update(&one, 1);
  while (bytes_ % kBlock != 56) update(&zero, 1);
  for (int shift = 56; shift >= 0; shift -= 8) {
    const auto byte = static_cast<uint8_t>(bits >> shift);
    update(&byte, 1);
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[(word >> shift) & 15];
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex();
}

}  // namespace megalith
