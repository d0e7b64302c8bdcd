#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// The MD5 (RFC 1321) of the bytes in 32 lower-case hexadecimal digits: for names that other tools make with
/// it. It protects against nothing.
std::string md5_hex(std::string_view bytes);

}  // namespace megalith
