#include "libcore/io/ahead/bgzf_block.h"

#include <algorithm>
#include <array>

namespace megalith {
namespace {

constexpr size_t kHeader = 12;  // up to the extra field

size_t number_at(std::span<const uint8_t> bytes, size_t at) {
  return bytes[at] | size_t{bytes[at + 1]} << 8;
}

}  // namespace

std::optional<size_t> bgzf_block_size(std::span<const uint8_t> bytes, size_t at) {
  if (at + kHeader > bytes.size()) return std::nullopt;
  constexpr std::array<uint8_t, 4> kBegin = {0x1f, 0x8b, 8, 4};  // gzip, deflate, with an extra field
  if (!std::equal(kBegin.begin(), kBegin.end(), bytes.begin() + static_cast<ptrdiff_t>(at)))
    return std::nullopt;
  const size_t end = at + kHeader + number_at(bytes, at + 10);
  if (end > bytes.size()) return std::nullopt;
  for (size_t field = at + kHeader; field + 6 <= end;) {
    const size_t length = number_at(bytes, field + 2);
    if (bytes[field] == 'B' && bytes[field + 1] == 'C' && length == 2) return number_at(bytes, field + 4) + 1;
    field += 4 + length;
  }
  return std::nullopt;
}

}  // namespace megalith
