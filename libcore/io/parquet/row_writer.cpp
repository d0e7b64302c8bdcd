#include "libcore/io/parquet/row_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "libcore/base/text.h"
#include "libcore/io/parquet/json_string.h"

namespace megalith {
namespace {

using Kind = RowNode::Kind;

void append(ByteBuffer& out, std::string_view text) {
  out.append(text.data(), text.size());
}

template <class Number>
void append_number(ByteBuffer& out, Number number) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  append(out, {digits.data(), static_cast<size_t>(end - digits.data())});
}

uint64_t without_sign(int64_t value, parquet::Physical type) {
  return type == parquet::Physical::kInt32 ? static_cast<uint32_t>(value) : static_cast<uint64_t>(value);
}

}  // namespace

void RowWriter::write(ByteBuffer& out, const Room& room) {
  Output output{out, room, out.size()};
  write_object(shape_.row, 0, output);
  append(out, "\n");
}

/// Throws unless the column's next entry belongs where the row is now.
void RowWriter::expect(ColumnReader& column, int repetition) const {
  if (column.at_end()) fail_damaged(column.place(), "its values end before the rows of its row group do");
  if (column.repetition() != repetition)
    fail_damaged(column.place(), "found repetition level ", column.repetition(), ", wanted ", repetition,
                 " as other columns have it");
}

/// Takes one entry of each of the node's columns, whose definition levels must be below `below`.
void RowWriter::skip(const RowNode& node, int below, int repetition) {
  for (size_t i = node.column; i < node.column + node.columns; ++i) {
    ColumnReader& column = columns_[i];
    expect(column, repetition);
    if (column.definition() >= below)
      fail_damaged(column.place(), "found a value where other columns say that there is none");
    column.take();
  }
}

void RowWriter::write_value(const RowNode& node, int repetition, Output& out) {
  if (node.kind == Kind::kObject) return write_object(node, repetition, out);
  if (node.kind == Kind::kList) return write_list(node, repetition, out);
  write_leaf(node, repetition, out);
}

void RowWriter::write_object(const RowNode& node, int repetition, Output& out) {
  append(out.bytes, "{");
  bool first = true;
  for (const RowNode& member : node.parts) {
    if (is_null(member)) {
      skip(member, member.definition, repetition);
      continue;
    }
    if (!first) append(out.bytes, ",");
    first = false;
    append(out.bytes, member.key);
    write_value(member, repetition, out);
  }
  append(out.bytes, "}");
}

void RowWriter::write_list(const RowNode& node, int repetition, Output& out) {
  ColumnReader& first = columns_[node.column];
  append(out.bytes, "[");
  if (first.definition() < node.filled) {
    skip(node, node.filled, repetition);
    return append(out.bytes, "]");
  }
  const RowNode& element = node.parts.front();
  for (int level = repetition;; level = node.repetition) {
    out.room(out.bytes.size(), out.bytes.size() - out.begin, 0);
    if (is_null(element)) {
      skip(element, element.definition, level);
      append(out.bytes, "null");
    } else {
      write_value(element, level, out);
    }
    if (first.repetition() != node.repetition) break;
    append(out.bytes, ",");
  }
  append(out.bytes, "]");
}

void RowWriter::write_leaf(const RowNode& node, int repetition, Output& out) {
  ColumnReader& column = columns_[node.column];
  expect(column, repetition);
  const ColumnValue& value = column.take();
  switch (node.kind) {
    case Kind::kText: {
      const size_t size = out.bytes.size();
      return append_json_string(out.bytes,
                                value.text.substr(0, out.room(size, size - out.begin, value.text.size())));
    }
    case Kind::kInteger:
      return append_number(out.bytes, value.integer);
    case Kind::kUnsigned:
      return append_number(out.bytes, without_sign(value.integer, column.shape().type));
    case Kind::kReal:
      return append(out.bytes, std::isfinite(value.real) ? format_double(value.real) : "null");
    case Kind::kTruth:
      return append(out.bytes, value.integer != 0 ? "true" : "false");
    case Kind::kList:
    case Kind::kObject:
      return;
  }
}

}  // namespace megalith
