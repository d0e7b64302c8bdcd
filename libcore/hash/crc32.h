#pragma once

#include <cstddef>
#include <cstdint>

#include "libcore/base/machine/isa.h"

namespace megalith {

/// The CRC-32 of zip, gzip and PNG (reflected polynomial 0xEDB88320). `crc` is that of the bytes before, 0 at
/// the start. It runs at the speed of memory where the processor has carry-less multiplication, which is
/// needed to fold many bytes at a time.
uint32_t crc32(uint32_t crc, const void* data, size_t bytes);

/// The same on the inverted remainders before and after the bytes.
using Crc32 = uint32_t (*)(uint32_t remainder, const unsigned char* at, size_t bytes);
uint32_t crc32_generic(uint32_t remainder, const unsigned char* at, size_t bytes);
uint32_t crc32_avx2(uint32_t remainder, const unsigned char* at, size_t bytes);
uint32_t crc32_avx512vbmi2(uint32_t remainder, const unsigned char* at, size_t bytes);
/// The fastest of them for `isa`.
Crc32 crc32_kernel(Isa isa);

}  // namespace megalith
