#pragma once

#include <string>

#include "libcore/json/json.h"

namespace megalith {

/// The text of a file that people write: of more than 4 MiB (hundreds of times what there are) it is refused,
/// a file unread, because what is made of it takes a hundred times the memory. kNoInput, kIo, kData.
std::string read_small(const std::string& path);
/// Json::load() of a file that people write, such as config.json: values take up to 130 bytes of memory for
/// each byte of text, so that one of more than 4 MiB (hundreds of times what models have) is refused unread,
/// kData.
Json load_small(const std::string& path);
/// The same of a file in a folder that was named, which is a regular one: kNoInput for a FIFO, which nobody
/// would write to.
Json load_own_small(const std::string& path);

}  // namespace megalith
