// libmegalith_deflate.so, which crc32.cpp loads.

#include <cstddef>
#include <cstdint>

#include <libdeflate.h>

extern "C" uint32_t megalith_crc32(uint32_t crc, const void* data, size_t bytes) {
  return libdeflate_crc32(crc, data, bytes);
}
