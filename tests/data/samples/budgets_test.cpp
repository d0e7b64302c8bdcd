#include "libcore/data/samples/budgets.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/data/samples/dataset_builder.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using Words = std::vector<std::string>;

/// Writes a dataset of documents of these lengths.
void write_lengths(const std::string& prefix, const std::vector<int32_t>& lengths) {
  IndexedDatasetWriter writer(prefix, IndexedDType::kI32);
  for (const int32_t length : lengths)
    writer.add_document(std::vector<int32_t>(static_cast<size_t>(length), 1), std::vector{length});
  writer.finish();
}

std::string refusal(const Words& words) {
  try {
    parse_blend(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return {};
}

TEST(Budgets, AreReadBehindTheirPrefixes) {
  const Blend blend = parse_blend(Words{"a", "tokens=5e9", "b", "epochs=1.5"});
  EXPECT_EQ(blend.prefixes, (Words{"a", "b"}));
  EXPECT_TRUE(blend.weights.empty());
  ASSERT_EQ(blend.budgets.size(), 2U);
  EXPECT_EQ(blend.budgets[0].amount, 5e9);
  EXPECT_FALSE(blend.budgets[0].epochs);
  EXPECT_EQ(blend.budgets[1].amount, 1.5);
  EXPECT_TRUE(blend.budgets[1].epochs);
}

TEST(Budgets, AreGivenToAllDatasetsOrNone) {
  for (const Words& words : {Words{"a", "tokens=5", "b"},
                             {"a", "tokens=5", "0.3", "b"},
                             {"tokens=5", "a"},
                             {"a", "tokens=5", "b", "c"},
                             {"a", "tokens=5", "epochs=1"}})
    EXPECT_NE(refusal(words).find("gives a budget to some of its datasets; give PREFIX BUDGET pairs"),
              std::string::npos)
        << refusal(words);
  EXPECT_EQ(refusal({"a", "tokens=many"}),
            "--data-path: the budget \"tokens=many\"; wanted a number above 0 after tokens=");
  EXPECT_EQ(refusal({"a", "epochs=0"}),
            "--data-path: the budget \"epochs=0\"; wanted a number above 0 after epochs=");
}

// 8 of 10 documents train: those of 1 to 8 tokens, 36 in all.
TEST(Budgets, BecomeWholeTokensOfTheTrainingPart) {
  const test::TempDir dir;
  write_lengths(dir / "a", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  write_lengths(dir / "b", {7});
  const Words words{dir / "a", "epochs=1.5", dir / "b", "tokens=1e3"};
  EXPECT_EQ(open_blend(words, "8,1,1").blend.weights, (std::vector<double>{54, 1000}));
  EXPECT_EQ(open_blend(words).blend.weights, (std::vector<double>{82, 1000}));  // 82.5, half to even
  EXPECT_EQ(weights_text(std::vector<double>{54, 5e12}, Words{"a", "b"}), "54 a 5000000000000 b");
}

TEST(Budgets, InEpochsNeedTokensToTrainOn) {
  const test::TempDir dir;
  write_lengths(dir / "a", {3});
  try {
    open_blend({dir / "a", "epochs=1"}, "0,1,0");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("has a budget of 1 epochs, but no token to train on"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace megalith
