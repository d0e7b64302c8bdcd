#include "libcore/hash/md5.h"

#include <array>
#include <cstdint>

#include <nettle/md5.h>

#include "libcore/base/text.h"

namespace megalith {

std::string md5_hex(std::string_view bytes) {
  md5_ctx context;
  md5_init(&context);
  md5_update(&context, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data()));
  std::array<uint8_t, MD5_DIGEST_SIZE> digest;
  md5_digest(&context, digest.size(), digest.data());
  std::string text;
  for (const uint8_t byte : digest) append_hex(text, byte, 2);
  return text;
}

}  // namespace megalith
