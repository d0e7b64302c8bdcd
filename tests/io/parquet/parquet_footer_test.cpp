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

// A byte of the file is enough for a column, which takes 80 bytes and more in memory.
TEST(ParquetFooter, RefusesOneThatTakesTooMuchMemory) {
  const test::TempDir dir;
  const std::string path = dir / "rows.parquet";
  const auto write = [&](size_t columns) {
    const test::Thrift group = Thrift().list_of_nothing(1, columns).integer(3, 0);
    write_file(path,
               test::parquet_file({}, Thrift()
                                          .list(2, {Thrift().text(4, "r").integer(5, 1),
                                                    test::column_of_texts(parquet::Repetition::kRequired)})
                                          .list(4, {group})));
  };
  const auto complaint = [&] {
    try {
      read_parquet_footer(ReadableFile(path));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  write(size_t{1} << 20);
  EXPECT_NE(complaint().find("found 1048576 columns, wanted the schema's 1"), std::string::npos)
      << complaint();
  write(size_t{1} << 23);
  EXPECT_NE(complaint().find("its footer, from byte 4 on, takes more than 512.00 MiB of memory"),
            std::string::npos)
      << complaint();
}

TEST(ParquetFooter, CountsItsMemory) {
  const test::TempDir dir;
  const std::string path = dir / "rows.parquet";
  write_file(path, file_of_rows({5, 0, 7}));
  const ParquetFooter footer = read_parquet_footer(ReadableFile(path));
  const uint64_t held = 2 * sizeof(SchemaElement) + 3 * (sizeof(RowGroup) + sizeof(ColumnChunk));
  EXPECT_GE(footer.memory, held + file_size(path) - 16);
  EXPECT_LE(footer.memory, 3 * held + file_size(path));
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
