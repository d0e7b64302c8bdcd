#pragma once

#include <string>

#include "libcore/json/json.h"

namespace megalith {

/// The text of a file that people write. A file of more than 4 MiB (hundreds of times the usual size) is
/// refused, since parsed values take about a hundred times the memory of their text. It is refused before it
/// is read, unless its size is not known yet (a pipe). kNoInput, kIo, kData.
std::string read_small(const std::string& path);
/// Json::load() for a file that people write, such as config.json. Values take up to 130 bytes of memory for
/// each byte of text, so a file of more than 4 MiB (hundreds of times the usual size) is refused with kData,
/// as in read_small().
Json load_small(const std::string& path);
/// load_small() for a file in a folder that the user named. It must be a regular file: kNoInput for a FIFO,
/// since nobody would write to it and reading would wait forever.
Json load_own_small(const std::string& path);

}  // namespace megalith
