#include "libcore/dialects/megatron/pipeline_layout.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

TEST(PipelineLayout, GivesTheLayersOfEachStage) {
  EXPECT_EQ(stages_of_layout("Et*7|t*8|ttt|t*7L", 100, "here"), (std::vector<int>{7, 8, 3, 7}));
  EXPECT_EQ(stages_of_layout("EttL", 100, "here"), std::vector<int>{2});
}

TEST(PipelineLayout, NamesAStageThatIsNotPlanned) {
  const auto refusal = [](const std::string& layout) -> std::string {
    try {
      stages_of_layout(layout, 100, "here");
      return "taken";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(
      refusal("Et*16|m|L"),
      "here \"Et*16|m|L\": stage \"m\" is not planned; wanted E before the first, L after the last, and "
      "t*N in each, such as Et*7|t*8|t*7L");
  for (const char* layout : {"Et*101|tL", "Et*0|tL", "t|Et", "EtL|t", ""})
    EXPECT_NE(refusal(layout), "taken") << layout;
}

}  // namespace
}  // namespace megalith
