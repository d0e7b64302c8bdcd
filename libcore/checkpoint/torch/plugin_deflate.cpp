// libmegalith_deflate.so: see crc32.cpp.

#include <cstddef>
#include <cstdint>

#include <libdeflate.h>

extern "C" uint32_t megalith_crc32(uint32_t crc, const void* data, size_t bytes) {
  return libdeflate_crc32(crc, data, bytes);
}
