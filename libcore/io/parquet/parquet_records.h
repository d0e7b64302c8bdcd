#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "libcore/io/files/file.h"
#include "libcore/io/parquet/column_reader.h"
#include "libcore/io/parquet/parquet_footer.h"
#include "libcore/io/parquet/row_shape.h"
#include "libcore/io/parquet/row_writer.h"
#include "libcore/io/streams/text_reader.h"

namespace megalith {

/// Reads a Parquet file in batches of rows, each as a line of JSON with the wanted columns (row_shape(),
/// RowWriter; docs/formats/parquet.md), so that whatever reads loose JSON reads Parquet. A place's line is
/// the row in the file, from 1, also in a part of it. Of a row longer than LineLimits::longest, the texts are
/// cut so that it is little longer than that.
///
/// Memory: the footer and, for each column, one page as it is in the file and decompressed, and a dictionary;
/// writers make pages of about 1 MiB, and none is larger than a row group's part of the column. Throws
/// kNoInput, kIo; kData with the place for a damaged file, for codecs and types that are not read, and for a
/// row longer than LineLimits::refused.
class ParquetRecords final : public RecordReader {
 public:
  /// `keys`: what is read of a row; empty: all that JSON can express. Begins at `from`, a position of an
  /// earlier reader of the same file. `part`: of the file, cut where row groups begin
  /// (row_group_at_or_behind()). `name`: of the file, for messages; empty: its path.
  ParquetRecords(std::string path, const std::vector<std::string>& keys, LineLimits limits,
                 const ReaderMark& from = {}, const StreamPart& part = {}, const std::string& name = {});

  bool next(LineBatch& batch, const Grow& grow) override;
  uint64_t consumed() const override;
  uint64_t decoder_memory() const override;

  /// The columns that are not read, with reasons (RowShape::left_out).
  const std::vector<std::string>& left_out() const { return shape_.left_out; }

 private:
  size_t group_at(uint64_t byte) const;
  void begin_group(size_t group);
  void skip_to(uint64_t row);
  bool has_row();
  size_t room(size_t bytes, size_t row, size_t size, const Grow& grow) const;

  ReadableFile file_;
  std::string name_;
  ParquetFooter footer_;
  RowShape shape_;
  std::deque<ColumnReader> columns_;  // which must not move
  RowWriter writer_;
  size_t group_ = 0, last_group_ = 0;  // the current row group, and the one behind the last
  uint64_t row_ = 0, group_end_ = 0;   // the next row of the file, and the one behind the group
  uint64_t first_row_ = 0, part_rows_ = 0, part_bytes_ = 0;
};

/// What is read of a corpus.
struct CorpusUnits {
  TextUnit text = TextUnit::kNone;     // kNone: lines, or rows of Parquet
  std::vector<std::string> keys = {};  // what is read of a row; empty: all that JSON can express
};

/// Opens a reader of the records of a corpus: Parquet if the file begins as such, else lines or texts. kUsage
/// if `units` asks for the texts of a Parquet file. What a command writes is Parquet if the origin's path
/// ends with .parquet; it is then first written to a file without a name in temporary_folder(). Pipes and
/// stdin are never read as Parquet. Otherwise as open_records().
std::unique_ptr<RecordReader> open_corpus(const InputOrigin& origin, const CorpusUnits& units,
                                          const LineLimits& limits, const Interrupt* interrupt = nullptr,
                                          const ReaderMark& from = {}, const StreamPart& part = {});

}  // namespace megalith
