#include "libcore/data/samples/documents.h"

#include <vector>

#include <gtest/gtest.h>

#include "libcore/data/indexed/indexed_dataset.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

using Ints = std::vector<int32_t>;
constexpr int32_t kEnd = 9;

// Derived by hand from the code of Megatron-LM 0.12: for [5 9 6 7 9 9 8] and end token 9, the reset
// position_ids are [0 1 0 1 2 0 0].
TEST(Documents, BeginBehindTheEndOfTheOneBefore) {
  Ints tokens{5, 9, 6, 7, 9, 9, 8}, labels{9, 6, 7, 9, 9, 8, 4}, starts(7, -1);
  std::vector<float> mask(7, 1);
  mark_documents({tokens, labels, mask, starts}, kEnd, false);
  EXPECT_EQ(starts, (Ints{0, 0, 2, 2, 2, 5, 6}));
  EXPECT_EQ(mask, std::vector<float>(7, 1));
}

TEST(Documents, TheLabelBehindAnEndCountsNotWhereThatIsAsked) {
  Ints tokens{5, 9, 6, 9}, labels{9, 6, 9, 7};
  std::vector<float> mask(4, 1);
  mark_documents({tokens, labels, mask, {}}, kEnd, true);
  EXPECT_EQ(mask, (std::vector<float>{1, 0, 1, 0}));
}

TEST(Documents, EndWithTheTokenOrNot) {
  const TempDir dir;
  const auto ends = [&](const std::vector<Ints>& documents) {
    IndexedDatasetWriter writer(dir / "d", IndexedDType::kI32);
    for (const Ints& document : documents)
      document.empty() ? writer.add_document({}, {})
                       : writer.add_document(document, Ints{static_cast<int32_t>(document.size())});
    writer.finish();
    return ends_documents(IndexedDataset(dir / "d"), kEnd);
  };
  EXPECT_TRUE(ends({{5, kEnd}, {6, kEnd}}));
  EXPECT_FALSE(ends({{5, 6}, {kEnd, 7}}));
  EXPECT_TRUE(ends({{5, 6}, {}, {7, kEnd}})) << "a document may have been cut";
  EXPECT_TRUE(ends({{}})) << "nothing shows that they do not";
}

}  // namespace
}  // namespace megalith::test
