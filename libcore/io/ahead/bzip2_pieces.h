#pragma once

#include <memory>
#include <string>

#include "libcore/io/ahead/file_pieces.h"

namespace megalith {

/// The blocks of a bzip2 file, which begin with the 48 bits 0x314159265359 at any bit; the end of a stream
/// has the 48 bits 0x177245385090. Both may stand in a block by chance, about once in 30 TB: what is cut
/// there is damaged, and a decoder that reads the file from its beginning must take over. The checksum of
/// each stream is compared with those of its blocks. kNoInput, kIo.
std::unique_ptr<FilePieces> bzip2_pieces(const std::string& path);

}  // namespace megalith
