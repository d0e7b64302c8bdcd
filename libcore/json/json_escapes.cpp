#include "libcore/json/json_escapes.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "libcore/base/utf8.h"
#include "libcore/json/json_text_inl.h"

namespace megalith {
namespace {

/// A mask with one bit for each of 64 bytes, set if the byte is a quote, a backslash or a control character.
uint64_t specials_of(const char* at) {
  uint64_t mask = 0;
  for (int i = 0; i < 64; i += Generic::kBytes) mask |= Generic::specials(Generic::load(at + i)) << i;
  return mask;
}

/// Copies exactly `n` < 16 bytes from `at` back to `out` <= `at`. It must not write more bytes, since those
/// after `out` + `n` may still have to be read.
void copy_short(char* out, const char* at, size_t n) {
  const auto piece = [&](size_t bytes) {
    if ((n & bytes) == 0) return;
    char word[8];
    std::memcpy(word, at, bytes);
    std::memcpy(out, word, bytes);
    at += bytes;
    out += bytes;
  };
  piece(8);
  piece(4);
  piece(2);
  piece(1);
}

}  // namespace

char* skip_plain(char* at, char* end, bool& escaped) {
  while (end - at > 64) {
    uint64_t mask = specials_of(at);
    size_t place = 64;
    while (mask != 0) {
      place = static_cast<size_t>(std::countr_zero(mask));
      if (at[place] != '\\') return at + place;
      const char meant = kEscapes[index_of(at[place + 1])];
      if (meant == 0 || meant == 'u') return at + place;
      escaped = true;
      place += 2;
      mask = place < 64 ? mask & (~uint64_t{0} << place) : 0;
    }
    at += std::max<size_t>(place, 64);
  }
  while (at < end && *at != '"' && static_cast<unsigned char>(*at) > 0x1f) {
    if (*at == '\\') {
      const char meant = end - at > 1 ? kEscapes[index_of(at[1])] : '\0';
      if (meant == 0 || meant == 'u') return at;
      escaped = true;
      ++at;
    }
    ++at;
  }
  return at;
}

std::optional<uint32_t> read_low_half(const char* at, const char* end) {
  if (end - at < 6 || at[0] != '\\' || at[1] != 'u') return std::nullopt;
  const uint32_t unit = read_hex4(at + 2, end);
  return unit != kNoUnit && is_low_surrogate(unit) ? std::optional(unit) : std::nullopt;
}

void decode_unit(const char*& at, const char* end, char*& out) {
  uint32_t c = read_hex4(at + 2, end);
  at += 6;
  if (is_high_surrogate(c)) {
    if (const std::optional<uint32_t> low = read_low_half(at, end)) {
      c = 0x10000 + ((c & 0x3FF) << 10) + (*low & 0x3FF);
      at += 6;
    }
  }
  out = c < 0x10000 ? write_unit(out, c) : write_utf8(out, c);
}

char* unescape(const char* at, const char* end, char* out) {
  const auto decode = [&] {  // decodes the escapes that begin at `at`
    do {
      if (at[1] == 'u') {
        decode_unit(at, end, out);
      } else {
        *out++ = kEscapes[index_of(at[1])];
        at += 2;
      }
    } while (at < end && *at == '\\');
  };
  while (end - at >= Bytes16::kBytes) {
    const Bytes16 x = Bytes16::load(at);
    const unsigned mask = x.is('\\').bits();
    const auto plain = static_cast<size_t>(std::countr_zero(mask | 0x10000u));
    if (at - out >= Bytes16::kBytes || mask == 0)
      x.store(out);  // does not overwrite bytes that are still to be read
    else
      copy_short(out, at, plain);
    at += plain;
    out += plain;
    if (mask != 0) decode();
  }
  while (at < end) {
    if (*at == '\\')
      decode();
    else
      *out++ = *at++;
  }
  return out;
}

}  // namespace megalith
