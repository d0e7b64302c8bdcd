#pragma once

#include <string>
#include <string_view>

#include "libcore/base/byte_buffer.h"

namespace megalith {

/// Appends the text as a JSON string with its quotes. Only quotes, backslashes and characters below U+0020
/// are escaped; invalid UTF-8 stays as it is.
void append_json_string(ByteBuffer& out, std::string_view text);
std::string json_string(std::string_view text);

}  // namespace megalith
