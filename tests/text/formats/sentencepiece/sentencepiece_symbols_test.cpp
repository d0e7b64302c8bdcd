#include "libcore/text/formats/sentencepiece/sentencepiece_symbols.h"

#include <limits>

#include "tests/text/fixtures.h"
#include "tests/text/formats/sentencepiece/random_model.h"

namespace megalith {
namespace {

using test::Table;

Table good() {
  Table table;
  table.trainer.kind = Table::kBpe;
  table.tokens = {
      {"<unk>", 0, Table::kUnknown}, {"</s>", 0, Table::kControl}, {"a", -2}, {"b", -3}, {"ab", -1}};
  return table;
}

TEST(SentencePieceSymbols, AreRefusedAsByTheLibrary) {
  const auto expect_refused = [](const std::vector<std::string>& parts, auto change) {
    Table table = good();
    change(table);
    test::expect_error(ErrorKind::kData, parts, [&] { check_sentencepiece(table, "m.model"); });
  };
  EXPECT_NO_THROW(check_sentencepiece(good(), "m.model"));
  expect_refused({"m.model", "piece 2 has no text"}, [](Table& t) { t.tokens[2].text = ""; });
  expect_refused({"m.model", "\"a\" appears twice"}, [](Table& t) { t.tokens[3].text = "a"; });
  expect_refused({"\"ab\" is not a number"},
                 [](Table& t) { t.tokens[4].score = std::numeric_limits<float>::quiet_NaN(); });
  expect_refused({"two unknown pieces, \"<unk>\" and \"b\""},
                 [](Table& t) { t.tokens[3].type = Table::kUnknown; });
  expect_refused({"no piece has the type UNKNOWN"}, [](Table& t) { t.tokens[0].type = Table::kControl; });
  expect_refused({"\"<0x41>\" is a byte's piece", "byte_fallback: false"}, [](Table& t) {
    t.tokens.push_back({"<0x41>", 0, Table::kByte});
  });
  expect_refused({"\"<0x4>\"", "\"<0x00>\" to \"<0xFF>\""}, [](Table& t) {
    t.trainer.byte_fallback = true;
    t.tokens.push_back({"<0x4>", 0, Table::kByte});
  });
  expect_refused({"no piece for byte 0"}, [](Table& t) { t.trainer.byte_fallback = true; });
}

TEST(SentencePieceSymbols, HaveOneRankForEqualScores) {
  Table table = good();
  table.tokens.push_back({"ba", -1});
  table.tokens.push_back({"aba", 5});
  const SentencePieceSymbols symbols(table);
  // ab, ba, and aba in two ways
  ASSERT_EQ(symbols.merges.size(), 4u);
  EXPECT_EQ(symbols.ranks, (std::vector<uint32_t>{1, 1, 0, 0}));
  EXPECT_TRUE(symbols.ends.empty());
}

TEST(SentencePieceSymbols, SayIfAnUnusedPieceIsMadeInSeveralWays) {
  Table table = good();
  table.tokens.push_back({"ba", -1});
  table.tokens.push_back({"aba", 5, Table::kUnused});
  EXPECT_TRUE(SentencePieceSymbols(table).has_ambiguous_unused);
  table.tokens[5].text = "bb";
  EXPECT_FALSE(SentencePieceSymbols(table).has_ambiguous_unused);
}

}  // namespace
}  // namespace megalith
