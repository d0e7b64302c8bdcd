#pragma once

#include <string>

#include "libcore/json/json.h"

namespace megalith {

/// The text of a file that people write. More than 4 MiB (hundreds of times the usual size) is refused, if
/// possible before reading: what is made of it takes a hundred times the memory. kNoInput, kIo, kData.
std::string read_small(const std::string& path);
/// Json::load() for a file that people write, such as config.json. Values take up to 130 bytes of memory for
/// each byte of text, so more than 4 MiB (hundreds of times what models have) is refused unread with kData.
Json load_small(const std::string& path);
/// The same for a file in a folder that the user named. It must be a regular file: kNoInput for a FIFO, to
/// which nobody would write.
Json load_own_small(const std::string& path);

}  // namespace megalith
