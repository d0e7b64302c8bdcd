#include "libcore/hash/hmac.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

const uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

}  // namespace

std::string hmac_sha256_hex(std::string_view key, std::string_view bytes) {
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, key.size(), bytes_of(key));
  hmac_sha256_update(&context, bytes.size(), bytes_of(bytes));
  std::array<uint8_t, SHA256_DIGEST_SIZE> digest;
  hmac_sha256_digest(&context, digest.size(), digest.data());
  std::string text;
  for (const uint8_t byte : digest) append_hex(text, byte, 2);
  return text;
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && memeql_sec(a.data(), b.data(), a.size()) != 0;
}

std::string random_bytes(size_t count) {
  constexpr size_t kMost = 256;  // getentropy() returns at most this many bytes
  std::string bytes(count, '\0');
  for (size_t at = 0; at < count; at += kMost)
    if (::getentropy(bytes.data() + at, std::min(kMost, count - at)) != 0)
      fail(ErrorKind::kIo, "the system gives no random bytes: ", std::strerror(errno));
  return bytes;
}

}  // namespace megalith
