#include "libcore/checkpoint/torch/crc32.h"

#include <libdeflate.h>

namespace megalith {

uint32_t crc32(uint32_t crc, const void* data, size_t bytes) {
  if (bytes == 0) return crc;  // of no bytes `data` may be null, for which libdeflate returns a new start
  return libdeflate_crc32(crc, data, bytes);
}

}  // namespace megalith
