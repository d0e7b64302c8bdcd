#pragma once

#include <cstddef>
#include <cstdint>

namespace megalith {

/// The CRC-32 of zip, gzip and PNG (reflected polynomial 0xEDB88320). `crc` is the result for the preceding
/// bytes; 0 at the start. libdeflate 1.14 reads 64 MiB at 8.1 GB/s (6.8 to 10.0, measured as for Xxh64),
/// faster than a disk delivers them.
uint32_t crc32(uint32_t crc, const void* data, size_t bytes);

}  // namespace megalith
