#pragma once

#include <functional>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/options/fate.h"

namespace megalith::test {

/// Expects a table of other tools' names (rows of OptionFate) to have each name once, and that no name is
/// empty.
template <class Rows>
void expect_one_row_for_each_name(const Rows& rows) {
  std::set<std::string_view> names;
  for (const auto& row : rows) {
    EXPECT_FALSE(row.name.empty());
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " has two rows";
  }
}

/// A function that returns the rows, for Options::fates().
template <class Rows>
std::function<std::vector<OptionFate>()> maker(const Rows& rows) {
  return [all = std::vector<OptionFate>(std::begin(rows), std::end(rows))] { return all; };
}

}  // namespace megalith::test
