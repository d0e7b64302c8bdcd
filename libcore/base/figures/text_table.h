#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace megalith {

/// A table for plain text. Each column is as wide as its widest cell; two blanks separate columns.
struct TextTable {
  using Row = std::vector<std::string>;
  /// How to print a table that is wider than the lines may be.
  enum class Wide {
    kColumnsBelow,  // columns that do not fit follow below, in a table that repeats the first column
    kRowsBroken,    // each row continues on an indented line of its own
  };

  std::vector<Row> rows;
  std::vector<size_t> texts = {};  // columns aligned to the left; the others are aligned to the right
  Wide wide = Wide::kColumnsBelow;
};

/// The table's lines, of at most `columns` characters unless one cell is wider; 0: unlimited. No line ends in
/// blanks.
std::string table_text(const TextTable& table, size_t columns);

}  // namespace megalith
