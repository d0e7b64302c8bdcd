#include "libcore/text/bpe/cache/piece_cutter.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/machine/isa.h"
#include "libcore/base/text.h"
#include "tests/text/bpe/random_vocabulary.h"

namespace megalith {
namespace {

struct Pretokens {
  std::string text;
  std::vector<uint32_t> ends;
};

/// Pretokens, most of them short, some of hundreds of characters; mostly ASCII if `plain`.
Pretokens random_pretokens(std::mt19937& random, bool plain) {
  Pretokens out;
  for (size_t count = 1 + random() % 70; count > 0; --count) {
    const size_t kind = random() % 40, most = kind == 0 ? 300 : kind < 12 ? 30 : 6;
    const size_t letters = plain && random() % 50 != 0 ? 5 : test::kFewLetters.size();
    for (size_t n = 1 + random() % most; n > 0; --n) out.text += test::kFewLetters[random() % letters];
    out.ends.push_back(static_cast<uint32_t>(out.text.size()));
  }
  if (random() % 2 == 0) out.text += "more";
  return out;
}

/// The ends of the pieces by definition: long pretokens are cut at every border.
std::vector<uint32_t> cut(const MergeBorders& borders, const Pretokens& pretokens) {
  std::vector<uint32_t> pieces;
  uint32_t begin = 0;
  for (const uint32_t end : pretokens.ends) {
    const std::string pretoken = pretokens.text.substr(begin, end - begin);
    for (uint32_t at = 1; pretoken.size() > 15 && at < pretoken.size(); ++at)
      if (borders.parts(pretoken, at)) pieces.push_back(begin + at);
    pieces.push_back(begin = end);
  }
  return pieces;
}

class CutPiecesIsa : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Isas, CutPiecesIsa, testing::Values(Isa::kGeneric, Isa::kAvx512),
                         [](const auto& isa) { return std::string(name(isa.param)); });

TEST_P(CutPiecesIsa, CutLongPretokensAtEveryBorder) {
  if (GetParam() > best_isa()) GTEST_SKIP() << "not on this processor";
  const CutPieces cut_by_kernel = cut_pieces(GetParam());
  std::mt19937 random(5);
  size_t cuts = 0, joined = 0, as_they_were = 0;
  for (int round = 0; round < 2000; ++round) {
    test::MergedVocabulary vocabulary;
    vocabulary.add_random(test::kFewLetters, round % 4 * 20, random);
    const MergeBorders borders(vocabulary.tokens, vocabulary.merges);
    const Pretokens pretokens = random_pretokens(random, round % 2 == 0);
    const std::vector<uint32_t> wanted = cut(borders, pretokens);
    std::vector<uint32_t> found(pretokens.text.size() + pretokens.ends.size() + kSpareEnds);
    const uint32_t* const after = cut_by_kernel(borders, {pretokens.text, pretokens.ends}, found.data());
    if (after == nullptr) {
      ASSERT_EQ(pretokens.ends, wanted) << quote(pretokens.text);
      ++as_they_were;
    } else {
      ASSERT_EQ(std::vector<uint32_t>(std::as_const(found).data(), after), wanted) << quote(pretokens.text);
    }
    cuts += wanted.size() - pretokens.ends.size();
    for (size_t at = 1; at < pretokens.text.size(); ++at)
      joined += static_cast<uint8_t>(pretokens.text[at]) >= 0xC0 && borders.joins(pretokens.text, at);
  }
  EXPECT_GT(cuts, 10000U);
  EXPECT_GT(joined, 10000U);
  EXPECT_EQ(as_they_were > 100, cut_by_kernel != cut_pieces_generic);
}

TEST(PieceCutter, KeepsWhatNeedsNoCut) {
  const MergeBorders borders({}, {});
  const WholeTokenIds none;
  PieceCutter cutter(borders, none);
  const std::string text = "a long word of ASCII: internationalization";
  const std::vector<uint32_t> ends = {1, 6, 22, static_cast<uint32_t>(text.size())};
  const auto pieces = cutter.cut({text, ends});
  EXPECT_EQ(std::vector<uint32_t>(pieces.begin(), pieces.end()), ends);
}

}  // namespace
}  // namespace megalith
