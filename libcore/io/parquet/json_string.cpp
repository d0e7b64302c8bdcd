#include "libcore/io/parquet/json_string.h"

#include <bit>

#include "libcore/base/machine/bytes16.h"

namespace megalith {
namespace {

constexpr size_t kLongestEscape = 6;  // \u001f

char* write_escape(char* out, char c) {
  constexpr std::string_view kShort = "\"\"\\\\\bb\ff\nn\rr\tt", kDigits = "0123456789abcdef";
  *out++ = '\\';
  for (size_t i = 0; i < kShort.size(); i += 2) {
    if (kShort[i] != c) continue;
    *out++ = kShort[i + 1];
    return out;
  }
  const auto code = static_cast<unsigned char>(c);
  for (const char digit : {'u', '0', '0', kDigits[code >> 4], kDigits[code & 0xf]}) *out++ = digit;
  return out;
}

bool is_special(char c) {
  return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
}

/// Copies [at, end) to `out`, which has room for kLongestEscape bytes for each.
char* write_escaped(const char* at, const char* end, char* out) {
  constexpr ptrdiff_t kStep = Bytes16::kBytes;
  while (at < end) {
    if (end - at >= kStep) {
      const Bytes16 x = Bytes16::load(at);
      const unsigned special = (x.is('"') | x.is('\\') | x.at_most(0x1f)).bits();
      const int plain = special == 0 ? static_cast<int>(kStep) : std::countr_zero(special);
      x.store(out);
      at += plain;
      out += plain;
      if (special == 0) continue;
    }
    if (is_special(*at))
      out = write_escape(out, *at);
    else
      *out++ = *at;
    ++at;
  }
  return out;
}

}  // namespace

void append_json_string(ByteBuffer& out, std::string_view text) {
  constexpr size_t kBlock = 2048;
  out.append("\"", 1);
  while (!text.empty()) {
    const std::string_view block = text.substr(0, kBlock);
    text.remove_prefix(block.size());
    // storing whole vectors writes at most as many bytes more
    const size_t before = out.size();
    char* const begin = out.extend(block.size() * kLongestEscape + Bytes16::kBytes);
    out.truncate(before + static_cast<size_t>(
                              write_escaped(block.data(), block.data() + block.size(), begin) - begin));
  }
  out.append("\"", 1);
}

std::string json_string(std::string_view text) {
  ByteBuffer out;
  append_json_string(out, text);
  return {out.data(), out.size()};
}

}  // namespace megalith
