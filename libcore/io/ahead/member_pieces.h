#pragma once

#include <memory>
#include <string>

#include "libcore/io/ahead/file_pieces.h"

namespace megalith {

/// The blocks of a BGZF file, in pieces of at least kPieceBytes. Null if it does not begin with such a block.
std::unique_ptr<FilePieces> bgzf_pieces(const std::string& path);
/// The frames of a zstd file (RFC 8878, section 3.1), in pieces of at least kPieceBytes. Null if the first
/// frame is longer than 64 MiB, or is all of the file.
std::unique_ptr<FilePieces> zstd_pieces(const std::string& path);

}  // namespace megalith
