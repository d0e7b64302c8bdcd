#include "libcore/io/parquet/parquet_footer.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/io/parquet/hand_made.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::Thrift;

/// A file without values, whose row groups say that they have so many rows.
std::string file_of_rows(const std::vector<int64_t>& rows) {
  std::vector<Thrift> groups;
  for (const int64_t number : rows) groups.push_back(Thrift().list(1, {Thrift()}).integer(3, number));
  return test::parquet_file({}, Thrift()
                                    .list(2, {Thrift().text(4, "r").integer(5, 1),
                                              test::column_of_texts(parquet::Repetition::kRequired)})
                                    .list(4, groups));
}

TEST(ParquetFooter, RefusesMoreRowsThanCanBeCounted) {
  const test::TempDir dir;
  const std::string path = dir / "rows.parquet";
  write_file(path, file_of_rows({5, 0, 7}));
  const ParquetFooter footer = read_parquet_footer(ReadableFile(path));
  ASSERT_EQ(footer.groups.size(), 3U);
  EXPECT_EQ(footer.groups[2].rows, 7);
  // their sum would be 0 in 64 bits
  for (const std::vector<int64_t>& rows :
       {std::vector<int64_t>{INT64_MAX, INT64_MAX, 2}, {-1}, {INT64_MAX, 1}}) {
    write_file(path, file_of_rows(rows));
    EXPECT_THROW(read_parquet_footer(ReadableFile(path)), Error) << rows.size();
  }
}

TEST(ParquetFooter, FindsNoGroupBehindTheFile) {
  const test::TempDir dir;
  const std::string path = dir / "rows.parquet";
  write_file(path, file_of_rows({5}));
  EXPECT_EQ(row_group_at_or_behind(path, 0), 0U);
  EXPECT_EQ(row_group_at_or_behind(path, 1), file_size(path));
  EXPECT_EQ(row_group_at_or_behind(path, file_size(path) + 1), file_size(path)) << "it was cut off meanwhile";
}

}  // namespace
}  // namespace megalith
