#include "libcore/base/figures/text_table.h"

#include <algorithm>
#include <string_view>

namespace megalith {
namespace {

constexpr std::string_view kGap = "  ", kIndent = "    ";

/// The columns [begin, end) of a table, which fit side by side in one line.
struct Part {
  size_t begin, end;
};

class Printer {
 public:
  Printer(const TextTable& table, size_t columns) : table_(table) {
    for (const TextTable::Row& row : table.rows) {
      widths_.resize(std::max(widths_.size(), row.size()));
      for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
    }
    const bool below = table.wide == TextTable::Wide::kColumnsBelow && !widths_.empty();
    size_t before = below ? widths_[0] + kGap.size() : 0;
    for (size_t begin = below ? 1 : 0; begin < widths_.size(); begin = parts_.back().end) {
      parts_.push_back({begin, end_of_part(begin, before, columns)});
      if (!below) before = kIndent.size();
    }
  }

  std::string text() {
    if (table_.wide == TextTable::Wide::kColumnsBelow) {
      for (const Part& part : parts_)
        for (const TextTable::Row& row : table_.rows) add_line(cell(row, 0).append(kGap), row, part);
    } else {
      for (const TextTable::Row& row : table_.rows)
        for (const Part& part : parts_)
          if (part.begin < row.size()) add_line(std::string(part.begin == 0 ? "" : kIndent), row, part);
    }
    return std::move(out_);
  }

 private:
  /// Where the part that begins at column `begin` ends: the index after its last column. Each of its lines
  /// already has `before` characters.
  size_t end_of_part(size_t begin, size_t before, size_t columns) const {
    size_t end = begin + 1;
    for (size_t used = before + widths_[begin]; end < widths_.size(); ++end) {
      used += kGap.size() + widths_[end];
      if (columns != 0 && used > columns) break;
    }
    return end;
  }
  std::string cell(const TextTable::Row& row, size_t column) const {
    const std::string blanks(widths_[column] - row[column].size(), ' ');
    const bool left = std::find(table_.texts.begin(), table_.texts.end(), column) != table_.texts.end();
    return left ? row[column] + blanks : blanks + row[column];
  }
  void add_line(std::string line, const TextTable::Row& row, const Part& part) {
    for (size_t i = part.begin; i < std::min(part.end, row.size()); ++i)
      line.append(i > part.begin ? kGap : "").append(cell(row, i));
    line.resize(line.find_last_not_of(' ') + 1);
    out_ += line + '\n';
  }

  const TextTable& table_;
  std::vector<size_t> widths_;
  std::vector<Part> parts_;
  std::string out_;
};

}  // namespace

std::string table_text(const TextTable& table, size_t columns) {
  return Printer(table, columns).text();
}

}  // namespace megalith
