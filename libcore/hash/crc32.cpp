#include "libcore/hash/crc32.h"

#include "libcore/base/plugins/plugin.h"

namespace megalith {

uint32_t crc32(uint32_t crc, const void* data, size_t bytes) {
  if (bytes == 0) return crc;  // `data` may be null, for which libdeflate would start a new CRC
  static const Plugin kPlugin("libmegalith_deflate.so");
  static const auto kNext =
      kPlugin.function<uint32_t(uint32_t crc, const void* data, size_t bytes)>("megalith_crc32");
  return kNext(crc, data, bytes);
}

}  // namespace megalith
