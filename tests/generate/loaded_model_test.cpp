#include "libcore/generate/loaded_model.h"

#include <gtest/gtest.h>

#include "tests/support/goldens.h"

namespace megalith {
namespace {

// The model has 32 positions, of which 28 are the original context. Its rotation depends on the longest text.
TEST(LoadedModel, RotatesByTheLengthOfTheLongestText) {
  const ModelSource source(test::convert_golden("families/phi4"));
  for (const auto& [length, rotated_for] :
       {std::pair{int64_t{12}, 12}, {int64_t{29}, 29}, {int64_t{1000}, 32}})
    EXPECT_EQ(LoadedModel(source, {.length = length}).stage().config().seq_length, rotated_for) << length;
  EXPECT_EQ(LoadedModel(source, {.length = 12}).stage().config().max_positions, 32);
  EXPECT_EQ(LoadedModel(source, {}).stage().config().seq_length, 28);
  EXPECT_EQ(LoadedModel(source, {}).stage().config().max_positions, 28);
}

TEST(LoadedModel, TakesAnotherModelAsItIs) {
  const ModelSource source(test::convert_golden("llama"));
  EXPECT_EQ(LoadedModel(source, {.length = 12}).stage().config().seq_length, source.config().seq_length);
}

}  // namespace
}  // namespace megalith
