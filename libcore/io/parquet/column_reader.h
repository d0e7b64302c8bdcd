#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/byte_buffer.h"
#include "libcore/io/files/file.h"
#include "libcore/io/parquet/column_values.h"
#include "libcore/io/parquet/packed_numbers.h"
#include "libcore/io/parquet/page_header.h"
#include "libcore/io/parquet/parquet_footer.h"
#include "libcore/io/streams/decoder.h"

namespace megalith {

/// A column as the schema has it.
struct ColumnShape {
  size_t number = 0;      // among the columns of the file
  std::string path = {};  // "messages.list.element.content"
  parquet::Physical type = parquet::Physical::kByteArray;
  int repetition = 0, definition = 0;  // the highest levels
};

/// Reads a column's entries, each with its repetition and definition level (Dremel's; see
/// docs/formats/parquet.md), through the row groups that it is given. Holds one page as it is in the file and
/// decompressed, and the dictionary. Throws kData with the column and the page's place, kIo. Each page calls
/// stop_if_asked().
class ColumnReader {
 public:
  /// `file` must outlive the reader. `name`: of the file, for messages.
  ColumnReader(const ReadableFile& file, ColumnShape shape, const std::string& name);

  /// Begins with the first entry of a row group's part of the column.
  void begin(const ColumnChunk& chunk);
  /// Whether all entries of that part were taken.
  bool at_end() const { return taken_ == chunk_.values; }

  /// The levels of the next entry. A page may end before it: texts of earlier entries are then no longer
  /// valid. Behind the last one the repetition level is 0, as that of a next row.
  int repetition() { return at_end() ? 0 : entry().repetition; }
  int definition() { return at_end() ? -1 : entry().definition; }
  /// Takes the entry. Its value is set if the definition level is the highest one.
  const ColumnValue& take();

  const ColumnShape& shape() const { return shape_; }
  const ParquetPlace& place() const { return place_; }
  uint64_t memory() const;  // bytes that it holds now

 private:
  struct Entry {
    int repetition, definition;
  };
  const Entry& entry();
  void next_page();
  PageHeader read_header();
  void read_body(const PageHeader& page);
  void check_body(const PageHeader& page) const;
  void take_dictionary(const PageHeader& page);
  void take_data(const PageHeader& page);
  void take_data_v2(const PageHeader& page);
  void open_page_values(const PageHeader& page, std::string_view bytes);
  RunDecoder levels_before(std::string_view& bytes, parquet::Encoding encoding, int highest) const;
  std::string_view decompress(std::string_view stored, int64_t size, ByteBuffer& out);
  void decompress_stream(std::string_view stored, char* out, size_t size);

  const ReadableFile& file_;
  ColumnShape shape_;
  ParquetPlace place_;
  ColumnChunk chunk_;
  uint64_t at_ = 0, end_ = 0;      // bytes of the file that were not read yet
  int64_t taken_ = 0, paged_ = 0;  // entries that were taken, and those of the pages so far
  bool read_ = false;              // whether entry_ is the next entry
  Entry entry_{};
  ColumnValue value_;
  RunDecoder repetitions_, definitions_;
  std::unique_ptr<ColumnValues> values_;
  std::vector<ColumnValue> dictionary_;
  ByteBuffer head_, stored_, page_, dictionary_page_;
  std::unique_ptr<Decoder> decoder_;
  parquet::Codec decoder_codec_{};
};

}  // namespace megalith
