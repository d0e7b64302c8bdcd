#include "libcore/config/activations.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

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

/// The texts between backquotes.
std::vector<std::string> names_in(const std::string& cell) {
  const std::vector<std::string> parts = split(cell, '`');
  std::vector<std::string> found;
  for (size_t i = 1; i < parts.size(); i += 2) found.push_back(parts[i]);
  return found;
}

// docs/training.md has a row for each function, in the order of activations(): the formula, the names of
// Hugging Face and of MindFormers.
TEST(Activations, AreTheTableOfTheDocumentation) {
  std::vector<std::vector<std::string>> rows;
  bool within = false;
  for (const std::string& line : split(read_file(test::test_data("../docs/training.md")), '\n')) {
    within = line.starts_with("|") && (within || line.starts_with("| function of x |"));
    if (within && line.starts_with("| ") && !line.starts_with("| function")) rows.push_back(split(line, '|'));
  }
  ASSERT_EQ(rows.size(), activations().size());
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), 7U) << rows[i][1];  // five cells between the first and the last bar
    const ActivationRow& row = activations()[i];
    EXPECT_EQ(names_in(rows[i][2]), std::vector<std::string>(row.hf.begin(), row.hf.end())) << rows[i][1];
    EXPECT_EQ(join(names_in(rows[i][3]), ","), row.mindformers) << rows[i][1];
    EXPECT_FALSE(trim(rows[i][5]).empty()) << rows[i][1];
  }
}

}  // namespace
}  // namespace megalith
