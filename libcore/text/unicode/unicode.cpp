#include "libcore/text/unicode/unicode.h"

#include "libcore/base/utf8.h"

namespace megalith {
CodePoint code_point_at(std::string_view utf8) {
  const auto byte = [&](size_t i) { return uint32_t{static_cast<unsigned char>(utf8[i])}; };
  const auto tail = [&](size_t i) { return i < utf8.size() && continues_character(utf8[i]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead >= 0xC2 && lead < 0xE0 && tail(1)) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead >= 0xE0 && lead < 0xF0 && tail(1) && tail(2))
    return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  if (lead >= 0xF0 && lead < 0xF5 && tail(1) && tail(2) && tail(3))
    return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
  return {0xFFFD, 1};
}

std::string_view first_characters(std::string_view utf8, size_t max_bytes) {
  if (utf8.size() <= max_bytes) return utf8;
  size_t end = character_begin(utf8, max_bytes);
  if (end == 0)
    for (end = 1; end < utf8.size() && continues_character(utf8[end]);) ++end;
  return utf8.substr(0, end);
}

}  // namespace megalith
