#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "libcore/base/machine/bytes16.h"
#include "libcore/json/json_text.h"

/// Parts of JsonText for files that are compiled for one instruction set. They must not call an inline
/// function of another header, unless the compiler is sure to inline it. Otherwise the linker might keep the
/// copy of the function from one of these files, which not every processor can run.
namespace megalith {
namespace {

/// For each byte after a backslash, the character that the escape stands for; 'u' for \u; 0 if the byte forms
/// no escape.
inline constexpr auto kEscapes = [] {
  std::array<char, 256> table{};
  table['"'] = '"';
  table['\\'] = '\\';
  table['/'] = '/';
  table['b'] = '\b';
  table['f'] = '\f';
  table['n'] = '\n';
  table['r'] = '\r';
  table['t'] = '\t';
  table['u'] = 'u';
  return table;
}();

inline constexpr uint8_t kNoHexDigit = 0x80;
/// For each byte, its value as a hexadecimal digit; kNoHexDigit if it is none.
inline constexpr auto kHexDigits = [] {
  std::array<uint8_t, 256> table{};
  for (uint8_t& value : table) value = kNoHexDigit;
  for (unsigned i = 0; i < 10; ++i) table['0' + i] = static_cast<uint8_t>(i);
  for (unsigned i = 0; i < 6; ++i) table['a' + i] = table['A' + i] = static_cast<uint8_t>(10 + i);
  return table;
}();

inline size_t index_of(char c) {
  return static_cast<unsigned char>(c);
}

inline constexpr uint32_t kNoUnit = 0x10000;
/// The value of the four hexadecimal digits at `at`; kNoUnit if there are not four.
inline uint32_t read_hex4(const char* at, const char* end) {
  if (end - at < 4) return kNoUnit;
  const auto digit = [&](size_t i) { return uint32_t{kHexDigits.data()[index_of(at[i])]}; };
  const uint32_t a = digit(0), b = digit(1), c = digit(2), d = digit(3);
  return ((a | b | c | d) & kNoHexDigit) != 0 ? kNoUnit : a << 12 | b << 8 | c << 4 | d;
}

/// Writes a UTF-16 unit that is not a surrogate as UTF-8; returns the end.
inline char* write_unit(char* out, uint32_t c) {
  if (c >= 0x800) {
    out[0] = static_cast<char>(0xE0 | (c >> 12));
    out[1] = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out[2] = static_cast<char>(0x80 | (c & 0x3F));
    return out + 3;
  }
  if (c >= 0x80) {
    out[0] = static_cast<char>(0xC0 | (c >> 6));
    out[1] = static_cast<char>(0x80 | (c & 0x3F));
    return out + 2;
  }
  *out = static_cast<char>(c);
  return out + 1;
}

/// Decodes the escape at stop.at and moves past it. Returns false, with nothing changed, if decode() must
/// stop there.
inline bool decode_escape(JsonText::Stop& stop, const char* end) {
  if (end - stop.at < 2) return false;
  const char meant = kEscapes.data()[index_of(stop.at[1])];
  if (meant == 0) return false;
  if (meant != 'u') {
    *stop.out++ = meant;
    stop.at += 2;
    return true;
  }
  const uint32_t unit = read_hex4(stop.at + 2, end);
  if (unit == kNoUnit || (unit & 0xF800) == 0xD800) return false;
  stop.out = write_unit(stop.out, unit);
  stop.at += 6;
  return true;
}

inline bool is_special(char c) {
  return c == '"' || c == '\\' || static_cast<unsigned char>(c) <= 0x1F;
}

/// A `Simd` (see find_special()) for every processor.
struct Generic {
  static constexpr int kBytes = Bytes16::kBytes;
  static Bytes16 load(const char* at) { return Bytes16::load(at); }
  static void store(char* out, Bytes16 x) { x.store(out); }
  static uint64_t specials(Bytes16 x) { return (x.is('"') | x.is('\\') | x.at_most(0x1F)).bits(); }
};

/// Simd loads and stores kBytes bytes at a time; specials() returns one bit for each byte, set if the byte is
/// special.
template <class Simd>
const char* find_special(const char* at, const char* end) {
  for (; end - at >= Simd::kBytes; at += Simd::kBytes) {
    const uint64_t special = Simd::specials(Simd::load(at));
    if (special != 0) return at + std::countr_zero(special);
  }
  while (at < end && !is_special(*at)) ++at;
  return at;
}

template <class Simd>
JsonText::Stop decode(const char* at, const char* end, char* out) {
  JsonText::Stop stop{at, out};
  while (end - stop.at >= Simd::kBytes) {
    const auto bytes = Simd::load(stop.at);
    const uint64_t special = Simd::specials(bytes);
    Simd::store(stop.out, bytes);
    const int plain = special == 0 ? Simd::kBytes : std::countr_zero(special);
    stop.at += plain;
    stop.out += plain;
    while (special != 0) {
      if (*stop.at != '\\' || !decode_escape(stop, end)) return stop;
      if (stop.at == end || *stop.at != '\\') break;
    }
  }
  for (;;) {
    while (stop.at < end && !is_special(*stop.at)) *stop.out++ = *stop.at++;
    if (stop.at == end || *stop.at != '\\' || !decode_escape(stop, end)) return stop;
  }
}

}  // namespace
}  // namespace megalith
