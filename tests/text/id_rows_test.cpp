#include "libcore/text/id_rows.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/text/tokenizer.h"

namespace megalith {
namespace {

constexpr int32_t kEnd = Tokenizer::kTextEnd;
using Ids = std::vector<int32_t>;

std::string rows_of(const Ids& ids, const IdTexts& texts = IdTexts(0)) {
  IdBuffer buffer(sizeof(int32_t));
  buffer.append(ids);
  ByteBuffer rows;
  append_id_rows(buffer, texts, rows);
  return {rows.data(), rows.size()};
}

/// The lists of ids in `rows`; {-2} if they cannot be read.
Ids ids_of(const std::string& rows) {
  Ids ids;
  return read_id_rows(rows, ids) ? ids : Ids{-2};
}

TEST(IdRows, HaveALineForEachList) {
  EXPECT_EQ(rows_of({}), "");
  EXPECT_EQ(rows_of({kEnd, 5, kEnd, kEnd, 10, 0, 200, kEnd}), "\n5\n\n10 0 200\n");
  EXPECT_EQ(ids_of("\n5\n\n10 0 200\n"), (Ids{kEnd, 5, kEnd, kEnd, 10, 0, 200, kEnd}));
}

TEST(IdRows, WriteEachNumberAsTheStandardLibrary) {
  const auto equals = [](int32_t id) { ASSERT_EQ(rows_of({id, kEnd}), std::to_string(id) + "\n"); };
  for (int32_t id = 0; id < 100'000; ++id) equals(id);
  for (int64_t power = 1; power < std::numeric_limits<int32_t>::max(); power *= 10)
    for (const int64_t near : {power - 1, power, power + 1, 9 * power, 5 * power + 7})
      equals(static_cast<int32_t>(std::min<int64_t>(near, std::numeric_limits<int32_t>::max())));
  std::mt19937 random(3);
  for (int i = 0; i < 100'000; ++i) equals(static_cast<int32_t>(random() >> (1 + random() % 31)));
}

TEST(IdRows, AreTheSameFromTheTextsOfAVocabulary) {
  const IdTexts few(1234), all(1'100'000);
  EXPECT_EQ(rows_of({0, 9, 1233, 1234, kEnd, kEnd, 7, kEnd}, few), "0 9 1233 1234\n\n7\n");
  std::mt19937 random(5);
  for (int i = 0; i < 50'000; ++i) {
    const Ids ids = {static_cast<int32_t>(random() >> (1 + random() % 31)), i, kEnd};
    ASSERT_EQ(rows_of(ids, few), rows_of(ids));
    ASSERT_EQ(rows_of(ids, all), rows_of(ids));
  }
  for (const int32_t id : {99'999, 100'000, 999'999, 1'000'000, 1'099'999})
    EXPECT_EQ(rows_of({id, kEnd}, all), std::to_string(id) + "\n");
}

TEST(IdRows, AreReadAsTheyWereWritten) {
  std::mt19937 random(4);
  for (int round = 0; round < 2000; ++round) {
    Ids ids;
    for (size_t n = random() % 40; n > 0; --n)
      ids.push_back(random() % 4 == 0 ? kEnd : static_cast<int32_t>(random() % 10'000'000 >> random() % 24));
    ids.push_back(kEnd);
    std::string rows;  // by the standard library
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != kEnd && i > 0 && ids[i - 1] != kEnd) rows += ' ';
      rows += ids[i] == kEnd ? "\n" : std::to_string(ids[i]);
    }
    ASSERT_EQ(rows_of(ids), rows);
    ASSERT_EQ(ids_of(rows), ids) << rows;
  }
}

TEST(IdRows, AreOnlyReadInTheirUsualForm) {
  EXPECT_EQ(ids_of("007\n"), (Ids{7, kEnd}));
  for (const char* rows : {"", "5", "5 6", " 5\n", "5 \n", "5  6\n", "5\t6\n", "5\r\n", "-5\n", "+5\n", "x\n",
                           "5x\n", "5 6:\n", "5 6/ 7 8 9 10 11 12\n", "12345678\n", "5\n123456789 1\n",
                           "1 2 3 4 5 6 7 8 9 x\n", "1 2 3 4 5 6 7 8 9 10 \n",
                           "\xEF\xBB\xBF"
                           "5\n"})
    EXPECT_EQ(ids_of(rows), Ids{-2}) << rows;
}

}  // namespace
}  // namespace megalith
