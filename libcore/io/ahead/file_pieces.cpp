#include "libcore/io/ahead/file_pieces.h"

#include "libcore/base/error.h"
#include "libcore/io/ahead/bzip2_pieces.h"
#include "libcore/io/ahead/member_pieces.h"
#include "libcore/io/ahead/xz_pieces.h"
#include "libcore/io/streams/decoder.h"
#include "libcore/io/streams/input_stream.h"

namespace megalith {

std::unique_ptr<FilePieces> pieces_of(const std::string& path) {
  const std::optional<Compression> compression = compression_by_head(head_of_file(path));
  if (!compression) return nullptr;
  try {
    switch (*compression) {
      case Compression::kGzip:
        return bgzf_pieces(path);
      case Compression::kZstd:
        return zstd_pieces(path);
      case Compression::kBzip2:
        return bzip2_pieces(path);
      case Compression::kXz:
        return xz_pieces(path);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData)
      throw;  // a decoder that reads the file as a whole says what is wrong
  }
  return nullptr;
}

}  // namespace megalith
