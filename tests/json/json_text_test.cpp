#include "libcore/json/json_text.h"

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "tests/support/isa.h"

namespace megalith {
namespace {

struct Kernel {
  const char* name;
  const JsonText& kernel;
};

/// The kernels that this processor can run.
std::vector<Kernel> kernels() {
  std::vector<Kernel> all;
  for (const Isa isa : test::runnable_isas()) all.push_back({name(isa), json_text(isa)});
  return all;
}

struct Decoded {
  size_t taken;
  std::string text;
  bool operator==(const Decoded&) const = default;
};

int hex_value(char c) {
  const size_t place = std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
  if (c >= '0' && c <= '9') return c - '0';
  return place == std::string_view::npos || place < 10 ? -1 : static_cast<int>(place);
}

/// Decodes byte by byte, by the rules of RFC 8259, section 7.
Decoded decode_naively(std::string_view text) {
  Decoded out{0, ""};
  for (size_t& i = out.taken; i < text.size();) {
    const char c = text[i];
    if (c == '"' || (c >= 0 && c < 0x20)) break;
    if (c != '\\') {
      out.text += c;
      ++i;
      continue;
    }
    const char then = i + 1 < text.size() ? text[i + 1] : '\0';
    const size_t simple = std::string_view("\"\\/bfnrt").find(then);
    if (then != '\0' && simple != std::string_view::npos) {
      out.text += "\"\\/\b\f\n\r\t"[simple];
      i += 2;
      continue;
    }
    if (then != 'u' || text.size() - i < 6) break;
    int unit = 0;
    for (size_t k = 2; k < 6; ++k)
      unit = hex_value(text[i + k]) < 0 || unit < 0 ? -1 : 16 * unit + hex_value(text[i + k]);
    if (unit < 0 || (unit >= 0xD800 && unit < 0xE000)) break;
    append_utf8(out.text, static_cast<uint32_t>(unit));
    i += 6;
  }
  return out;
}

/// Decodes with the kernel. Input and output are in memory of exactly their size, so that a sanitizer detects
/// accesses beyond them.
Decoded decode_with(const JsonText& kernel, std::string_view text) {
  const std::vector<char> in(text.begin(), text.end());
  std::vector<char> out(text.size() + JsonText::kSlack);
  const JsonText::Stop stop = kernel.decode(in.data(), in.data() + in.size(), out.data());
  return {static_cast<size_t>(stop.at - in.data()), std::string(out.data(), stop.out)};
}

/// A random string of plain bytes, all kinds of escapes, and sometimes something that ends the string.
std::string random_text(std::mt19937& random) {
  constexpr std::string_view kPieces[] = {
      "\\n",     "\\\"",    "\\\\",    "\\/",     "\\b",     "\\f",     "\\r",     "\\t",
      "\\u0041", "\\u00e9", "\\u0000", "\\u4E2D", "\\u07ff", "\\u0800", "\\uFFFF", "\\u007f",
      "é",       "中",      "😀",       "\\ud83d", "\\udc00", "\\u12",   "\\u12g4", "\\u\xC1\xC2\xC3\xC4",
      "\\x",     "\\\xEE",  "\"",      "\n",      "\x1f",    "\x7f",    "\\",      "u",
  };
  constexpr size_t kGood = 19;  // the first kGood pieces do not end the string
  std::string text;
  const size_t longest = random() % 3 == 0 ? 2 : random() % 2 == 0 ? 20 : 150;
  const size_t kinds = random() % 3 == 0 ? std::size(kPieces) : kGood;
  const bool repeats = random() % 2 == 0;
  std::string_view piece = kPieces[random() % kinds];
  for (size_t n = random() % 60; n > 0; --n) {
    if (!repeats || random() % 8 == 0) {
      text.append(random() % longest, static_cast<char>('a' + random() % 26));
      piece = kPieces[random() % kinds];
    }
    text += piece;
  }
  return text;
}

TEST(JsonText, DecodesAsANaiveLoopOnEveryProcessor) {
  std::mt19937 random(23);
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = random_text(random);
    const Decoded expected = decode_naively(text);
    for (const auto& [name, kernel] : kernels())
      ASSERT_EQ(decode_with(kernel, text), expected) << name << ": " << quote(text);
  }
}

TEST(JsonText, DecodesEveryUnit) {
  for (const auto& [name, kernel] : kernels())
    for (uint32_t unit = 0; unit < 0x10000; ++unit) {
      std::string text(unit % 61, 'x');
      for (const uint32_t shift : {12U, 8U, 4U, 0U}) {
        if (shift == 12) text += "\\u";
        text += (unit & 1 ? "0123456789abcdef" : "0123456789ABCDEF")[unit >> shift & 15];
      }
      ASSERT_EQ(decode_with(kernel, text), decode_naively(text)) << name << ": " << text;
    }
}

TEST(JsonText, SeesEveryByteAtEveryPlace) {
  for (const auto& [name, kernel] : kernels())
    for (size_t length : {0U, 1U, 15U, 16U, 17U, 31U, 32U, 63U, 64U, 65U, 129U})
      for (size_t place = 0; place < length; ++place)
        for (int byte = 0; byte < 256; ++byte) {
          std::vector<char> text(length, 'x');
          text[place] = static_cast<char>(byte);
          const bool special = byte < 0x20 || byte == '"' || byte == '\\';
          const char* const found = kernel.find_special(text.data(), text.data() + length);
          ASSERT_EQ(static_cast<size_t>(found - text.data()), special ? place : length)
              << name << ' ' << byte;
        }
}

}  // namespace
}  // namespace megalith
