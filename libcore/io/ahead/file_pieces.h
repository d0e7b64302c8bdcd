#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "libcore/io/streams/byte_source.h"

namespace megalith {

/// A part of a compressed file that can be decompressed without the parts before it.
struct FilePiece {
  uint64_t begin = 0, end = 0;  // bits of a bzip2 file, bytes of others
  uint64_t makes = 0;           // xz: bytes of decompressed data
  uint32_t flags = 0;           // bzip2: the level of its stream; xz: the two flag bytes of its stream
};

/// Finds the pieces of a file, in order, and opens them. Pieces follow each other without a gap in the
/// decompressed data, and the last one ends where the data does.
class FilePieces {
 public:
  virtual ~FilePieces() = default;
  /// The next piece; nothing behind the last one. Reads the file only a little beyond the piece. kData if the
  /// file does not continue as its format demands, kIo.
  virtual std::optional<FilePiece> next() = 0;
  /// A reader of the decompressed bytes of a piece, which does not use this object later on. Several threads
  /// may call it at once, also beside next().
  virtual std::unique_ptr<ByteSource> open(const FilePiece& piece) const = 0;
  /// Whether what is read of a piece may be wrong until the last byte of it was read without an error. False:
  /// it is what a decoder that reads the file from its beginning gives, up to the first damage.
  virtual bool is_certain_at_end_only() const = 0;
};

/// The pieces of a file; null if it has only one, or says nothing of pieces:
/// - the blocks of xz, by the index at the end of each stream (xz -T makes several blocks);
/// - the blocks of bzip2, which begin at any bit with a number of 48 bits;
/// - BGZF's blocks and zstd's frames, in pieces of at least kPieceBytes, unless the first frame is longer
/// than
///   64 MiB. Plain gzip is one piece.
/// Null also if the file cannot be opened: whoever reads it next has that error. kIo.
std::unique_ptr<FilePieces> pieces_of(const std::string& path);

/// Members that are smaller than this are read together: opening a piece takes about 50 µs.
inline constexpr uint64_t kPieceBytes = uint64_t{1} << 18;

}  // namespace megalith
