#include "libcore/io/files/name_pattern.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using Paths = std::vector<std::string>;

TEST(NamePattern, IsAWordWithAWildcard) {
  for (const char* word : {"a*", "?", "[ab]"}) EXPECT_TRUE(is_pattern(word)) << word;
  for (const char* word : {"", "a", "a]", "a/b.jsonl"}) EXPECT_FALSE(is_pattern(word)) << word;
}

TEST(NamePattern, MatchesInTheOrderOfBytes) {
  const test::TempDir dir;
  for (const char* name : {"b.x", "a.x", "B.x", "a.y"}) write_file(dir / name, "");
  EXPECT_EQ(paths_matching(dir / "*.x"), (Paths{dir / "B.x", dir / "a.x", dir / "b.x"}));
  EXPECT_EQ(paths_matching(dir / "[ab].?"), (Paths{dir / "a.x", dir / "a.y", dir / "b.x"}));
  EXPECT_EQ(paths_matching(dir / "*.z"), Paths{});
}

}  // namespace
}  // namespace megalith
