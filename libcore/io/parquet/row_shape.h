#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/io/parquet/column_reader.h"
#include "libcore/io/parquet/parquet_footer.h"

namespace megalith {

/// A value of a row as JSON: how it is made of the columns' entries.
struct RowNode {
  enum class Kind : uint8_t { kText, kInteger, kUnsigned, kReal, kTruth, kList, kObject };
  Kind kind = Kind::kObject;
  std::string key = {};  // a member of an object: its name as a JSON string, with a colon
  int definition = 0;    // the definition level from which on it is not null
  int filled = 0;        // of a list: that from which on it has an element
  int repetition = 0;    // of a list: the repetition level of its second element and those after it
  size_t column = 0;     // the first of its columns, among RowShape::columns; they are consecutive
  size_t columns = 0;    // their number, at least 1
  std::vector<RowNode> parts = {};  // an object's members; a list's element
};

/// Which columns are read, and how rows are made of them.
struct RowShape {
  RowNode row;  // an object
  std::vector<ColumnShape> columns = {};
  /// The columns and groups that are not read: each with the reason, "\"created\" (no text, number, truth,
  /// list or struct of these)".
  std::vector<std::string> left_out = {};
};

/// The rows with these keys: columns of the top level, or, for "meta.text" where there is no such column, a
/// member of a struct. Without keys, all columns that JSON can express. The schema's rules are those of
/// parquet-format's LogicalTypes.md, also for lists of old writers. kData if a key has no column, or one that
/// JSON cannot express, or if the schema is damaged.
RowShape row_shape(const ParquetFooter& footer, const std::vector<std::string>& keys,
                   const std::string& path);

}  // namespace megalith
