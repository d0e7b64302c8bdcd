#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "libcore/base/byte_buffer.h"
#include "libcore/io/parquet/column_reader.h"
#include "libcore/io/parquet/row_shape.h"

namespace megalith {

/// Writes rows as JSON objects. Nulls of objects are left out, so that they are missing keys; those of lists
/// are `null`, and so are numbers that are not finite.
class RowWriter {
 public:
  /// Called before a text, or an element of a list (size 0), is appended to an output that has `bytes` bytes,
  /// of which the row has `row`. Returns how many of the text's `size` bytes are kept; may throw.
  using Room = std::function<size_t(size_t bytes, size_t row, size_t size)>;

  /// `columns`: those of the shape, at the same row. Both must outlive the writer.
  RowWriter(const RowShape& shape, std::deque<ColumnReader>& columns) : shape_(shape), columns_(columns) {}

  /// Takes a row out of the columns and appends it. kData if their levels do not agree.
  void write(ByteBuffer& out, const Room& room);

 private:
  struct Output {
    ByteBuffer& bytes;
    const Room& room;
    size_t begin;  // of the row
  };
  void write_value(const RowNode& node, int repetition, Output& out);
  void write_object(const RowNode& node, int repetition, Output& out);
  void write_list(const RowNode& node, int repetition, Output& out);
  void write_leaf(const RowNode& node, int repetition, Output& out);
  bool is_null(const RowNode& node) { return columns_[node.column].definition() < node.definition; }
  void skip(const RowNode& node, int below, int repetition);
  void expect(ColumnReader& column, int repetition) const;

  const RowShape& shape_;
  std::deque<ColumnReader>& columns_;
};

}  // namespace megalith
