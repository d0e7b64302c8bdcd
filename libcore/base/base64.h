#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace megalith {

/// Decodes base64 text (RFC 4648: the standard alphabet, padded). Nothing if the text is not valid.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace megalith
