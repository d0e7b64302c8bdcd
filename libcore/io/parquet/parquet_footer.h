#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/io/files/file.h"
#include "libcore/io/parquet/parquet_format.h"
#include "libcore/io/parquet/parquet_place.h"

namespace megalith {

/// A node of the schema; they are listed depth first.
struct SchemaElement {
  std::optional<parquet::Physical> type = {};  // of a column; a group has none
  parquet::Repetition repetition = parquet::Repetition::kRequired;
  parquet::Meaning meaning = parquet::Meaning::kNone;
  std::string name = {};
  int32_t children = 0;
  int32_t type_length = 0;  // bytes of a value of type kFixedByteArray
};

/// A row group's part of a column: consecutive pages.
struct ColumnChunk {
  parquet::Codec codec = parquet::Codec::kUncompressed;
  int64_t values = 0;        // with nulls and empty lists
  int64_t begin = -1;        // of its first page in the file
  int64_t bytes = 0;         // of all its pages, as they are in the file
  bool in_this_file = true;  // false: another file has it
  bool encrypted = false;
};

struct RowGroup {
  std::vector<ColumnChunk> columns;  // one for each column of the schema, in its order
  int64_t rows = 0;
};

/// What the end of a Parquet file says of the file.
struct ParquetFooter {
  std::vector<SchemaElement> schema;  // the first is the root
  std::vector<RowGroup> groups;
  /// For each row group, the byte at which its first column begins; 0 for the first one, so that it belongs
  /// to what begins the file. At last the file's size.
  std::vector<uint64_t> begins;
  uint64_t memory = 0;  // bytes that reading it took at most
};

/// Whether a regular file begins as Parquet does. False if it cannot be opened or read: whoever reads it next
/// reports the error.
bool is_parquet(const std::string& path);

/// The same for the first bytes of a file.
bool begins_as_parquet(std::string_view head);

/// Reads the footer, and checks that each column of each row group lies in the file. kData, with the place,
/// if it does not, if the file is encrypted, or if the footer takes more than 512 MiB of memory. `name`: of
/// the file, for messages.
ParquetFooter read_parquet_footer(const ReadableFile& file, const std::string& name);
inline ParquetFooter read_parquet_footer(const ReadableFile& file) {
  return read_parquet_footer(file, file.path());
}

/// The first byte at or behind `byte` at which a row group of the file begins; the file's size if none does.
/// Nothing if the row groups do not ascend in the file, which then cannot be cut. kNoInput, kIo, kData.
std::optional<uint64_t> row_group_at_or_behind(const std::string& path, uint64_t byte);

}  // namespace megalith
