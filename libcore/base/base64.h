#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace megalith {

/// The bytes of `text` in base64 (RFC 4648: the standard alphabet, padded); nothing if it is not valid.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace megalith
