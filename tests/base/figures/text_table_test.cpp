#include "libcore/base/figures/text_table.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

const std::vector<TextTable::Row> kRows = {{"#", "name", "bytes"}, {"10", "a", "1,024"}, {"9", "long", "8"}};

TEST(TextTable, AlignsNumbersToTheRightAndTextsToTheLeft) {
  EXPECT_EQ(table_text({.rows = kRows}, 0),
            " #  name  bytes\n"
            "10     a  1,024\n"
            " 9  long      8\n");
  EXPECT_EQ(table_text({.rows = kRows, .texts = {0, 1}}, 0),
            "#   name  bytes\n"
            "10  a     1,024\n"
            "9   long      8\n");
}

TEST(TextTable, EndsNoLineInBlanks) {
  EXPECT_EQ(table_text({.rows = {{"a", "long"}, {"b", "c"}}, .texts = {0, 1}}, 0), "a  long\nb  c\n");
}

TEST(TextTable, PutsColumnsThatDoNotFitBelow) {
  EXPECT_EQ(table_text({.rows = kRows}, 15), table_text({.rows = kRows}, 0));
  EXPECT_EQ(table_text({.rows = kRows}, 14),
            " #  name\n"
            "10     a\n"
            " 9  long\n"
            " #  bytes\n"
            "10  1,024\n"
            " 9      8\n");
  EXPECT_EQ(table_text({.rows = kRows}, 1), table_text({.rows = kRows}, 14)) << "a column has no less";
}

TEST(TextTable, BreaksRows) {
  const TextTable table{.rows = kRows, .texts = {0, 1}, .wide = TextTable::Wide::kRowsBroken};
  EXPECT_EQ(table_text(table, 15),
            "#   name  bytes\n"
            "10  a     1,024\n"
            "9   long      8\n");
  EXPECT_EQ(table_text(table, 14),
            "#   name\n"
            "    bytes\n"
            "10  a\n"
            "    1,024\n"
            "9   long\n"
            "        8\n");
  EXPECT_EQ(table_text(table, 7),
            "#\n"
            "    name\n"
            "    bytes\n"
            "10\n"
            "    a\n"
            "    1,024\n"
            "9\n"
            "    long\n"
            "        8\n");
}

TEST(TextTable, TakesRowsWithFewerCells) {
  EXPECT_EQ(table_text({.rows = {{"a", "b", "c"}, {"d", "e"}}}, 0), "a  b  c\nd  e\n");
  EXPECT_EQ(table_text({.rows = {}, .wide = TextTable::Wide::kRowsBroken}, 0), "");
  EXPECT_EQ(table_text({.rows = {}}, 0), "");
}

}  // namespace
}  // namespace megalith
