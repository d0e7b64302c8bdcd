#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// HMAC-SHA-256 (RFC 2104) of `bytes`, in 64 lower-case hexadecimal digits. The key may have any length.
std::string hmac_sha256_hex(std::string_view key, std::string_view bytes);

/// Whether two texts are equal. The running time does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b);

/// Unpredictable random bytes from the system, for keys.
std::string random_bytes(size_t count);

}  // namespace megalith
