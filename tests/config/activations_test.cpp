#include "libcore/config/activations.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(Activations, HaveEachNameOnce) {
  std::set<std::string> theirs, mindformers;
  for (const ActivationRow& row : activations()) {
    EXPECT_EQ(hf_name(row.function), row.hf.front());
    for (const std::string_view name : row.hf) {
      EXPECT_TRUE(theirs.insert(std::string(name)).second) << name;
      EXPECT_EQ(hf_activation(name), row.function) << name;
      EXPECT_NE(hf_activation_names().find(name), std::string::npos) << name;
    }
    if (row.mindformers.empty()) continue;
    EXPECT_TRUE(mindformers.insert(std::string(row.mindformers)).second) << row.mindformers;
    EXPECT_EQ(mindformers_activation(row.mindformers), row.function);
  }
  EXPECT_EQ(theirs.size(), 11U);
}

// The two tools mean different functions by "gelu".
TEST(Activations, BelongToTheirTool) {
  EXPECT_EQ(hf_activation("gelu"), ActivationFunction::kGelu);
  EXPECT_EQ(mindformers_activation("gelu"), ActivationFunction::kGeluTanh);
  EXPECT_EQ(mindformers_activation("fast_gelu"), ActivationFunction::kQuickGelu);
  for (const char* unknown : {"", "mish", "fast_gelu", "GELU"})
    EXPECT_FALSE(hf_activation(unknown)) << unknown;
  for (const char* unknown : {"", "quick_gelu", "elu"})
    EXPECT_FALSE(mindformers_activation(unknown)) << unknown;
}

}  // namespace
}  // namespace megalith
