#pragma once

#include <memory>
#include <string>

#include "libcore/io/ahead/file_pieces.h"

namespace megalith {

/// The blocks of an xz file, by the index at the end of each of its streams (The .xz File Format, 1.2.1,
/// sections 2 and 4). Null if there is only one block, or if what surrounds the blocks is damaged; a decoder
/// that reads the file from its beginning then says how. kNoInput, kIo.
std::unique_ptr<FilePieces> xz_pieces(const std::string& path);

}  // namespace megalith
