#pragma once

#include <cstddef>
#include <cstdint>

namespace megalith {

/// Continues a CRC-32 as zip, gzip and PNG define it (reflected polynomial 0xEDB88320). `crc` is the CRC of
/// the preceding bytes; 0 at the start. libdeflate 1.14 reads 64 MiB at 8.1 GB/s (6.8 to 10.0, measured as
/// for Xxh64), which is faster than a disk delivers them.
uint32_t crc32(uint32_t crc, const void* data, size_t bytes);

}  // namespace megalith
