#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace megalith {

/// The most bytes of a block of BGZF, a gzip file of blocks that can be decompressed one by one (samtools'
/// bgzip).
inline constexpr size_t kMaxBgzfBlock = size_t{1} << 16;

/// The size in bytes of the block of BGZF that begins at `at`; nothing if no whole header of one is there.
/// Each block is a gzip member whose extra field has a subfield "BC" of two bytes, the size of the block less
/// one (SAM specification, section 4.1).
std::optional<size_t> bgzf_block_size(std::span<const uint8_t> bytes, size_t at);

}  // namespace megalith
