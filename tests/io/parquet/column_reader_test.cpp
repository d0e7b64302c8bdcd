// Pages that the writers of the goldens do not write.
#include "libcore/io/parquet/column_reader.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/parquet/parquet_records.h"
#include "tests/io/parquet/hand_made.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using namespace std::string_literals;
using parquet::Codec;
using parquet::Encoding;
using test::file_of_texts;
using test::page_of_nulls;

/// The rows of a file with these bytes, as lines.
std::string rows_of(const std::string& bytes) {
  const test::TempDir dir;
  write_file(dir / "made.parquet", bytes);
  ParquetRecords reader(dir / "made.parquet", {"t"}, {});
  std::string rows;
  for (LineBatch batch; reader.next(batch, [](size_t) {});) rows += batch.all();
  return rows;
}

std::string error_of(const std::string& bytes) {
  try {
    return "no error, but " + rows_of(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }
}

TEST(ColumnReader, TakesABlockOfNothingForNoValues) {
  const std::string nothing = "\0"s;  // what snappy makes of no bytes
  for (const Encoding encoding :
       {Encoding::kPlain, Encoding::kDeltaByteArray, Encoding::kDeltaLengthByteArray})
    EXPECT_EQ(rows_of(file_of_texts(page_of_nulls(3, encoding, nothing, 0), 3, Codec::kSnappy)),
              "{}\n{}\n{}\n");
}

TEST(ColumnReader, RefusesMoreEntriesThanMemoryShouldHold) {
  const std::string pages = test::dictionary_page((int64_t{1} << 24) + 1, "four");
  EXPECT_NE(
      error_of(file_of_texts(pages, 1, Codec::kUncompressed)).find("has a dictionary of 16777217 entries"),
      std::string::npos);
}

}  // namespace
}  // namespace megalith
