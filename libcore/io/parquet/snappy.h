#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace megalith {

/// The number of bytes that a block of snappy says it decompresses to; nothing if it does not begin so.
std::optional<uint64_t> snappy_size(std::string_view block);

/// Decompresses a block of snappy (google/snappy's format_description.txt) to `out`, which has room for
/// snappy_size() bytes. Returns why the block is damaged, or null.
const char* decompress_snappy(std::string_view block, char* out);

}  // namespace megalith
