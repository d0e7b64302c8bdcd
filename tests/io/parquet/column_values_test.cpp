#include "libcore/io/parquet/column_values.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

using namespace std::string_view_literals;
using parquet::Encoding;
using parquet::Physical;

const ParquetPlace kPlace{"f.parquet", "column \"t\"", 4};

TEST(ColumnValues, TakeEntriesOfADictionary) {
  const std::vector<ColumnValue> dictionary = {{.text = "a"}, {.text = "b"}};
  // one bit for each; a group of eight: 0 1 0 ...
  const auto values =
      open_values({Encoding::kRleDictionary, Physical::kByteArray, "\x01\x03\x02"sv, dictionary, kPlace});
  ColumnValue value;
  for (const std::string_view text : {"a", "b", "a"}) {
    values->next(value);
    EXPECT_EQ(value.text, text);
  }
}

TEST(ColumnValues, AreNotMadeOfNothing) {
  const std::vector<ColumnValue> dictionary = {{.text = "a"}};
  ColumnValue value;
  for (const Encoding encoding : {Encoding::kRleDictionary, Encoding::kPlain})
    EXPECT_THROW(open_values({encoding, Physical::kByteArray, {}, dictionary, kPlace})->next(value), Error);
}

}  // namespace
}  // namespace megalith
