#include "libcore/text/added_tokens.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

/// All matches as "begin-end:id", the way a tokenizer walks over them.
std::string matches(const AddedTokens& added, std::string_view text) {
  std::string out;
  size_t from = 0;
  while (const auto match = added.find(text, from)) {
    out += std::to_string(match->begin) + "-" + std::to_string(match->end) + ":" + std::to_string(match->id) +
           " ";
    from = match->end;
  }
  return out;
}

TEST(AddedTokens, FindsTheLeftmostAndOfThoseTheLongest) {
  const AddedTokens added({{.text = "<a>", .id = 1}, {.text = "<a><b>", .id = 2}, {.text = "<b>", .id = 3}});
  EXPECT_EQ(matches(added, "x<a><b><a>"), "1-7:2 7-10:1 ");
  EXPECT_EQ(matches(added, "<<b>"), "1-4:3 ");
  EXPECT_EQ(matches(added, "<a"), "");
  EXPECT_EQ(matches(added, ""), "");
}

TEST(AddedTokens, FindsThoseThatBeginDifferently) {
  const AddedTokens added({{.text = "[X]", .id = 1}, {.text = "<X>", .id = 2}, {.text = "\u00e9", .id = 3}});
  EXPECT_EQ(matches(added, "<X>\u00e9[X]\u00e8"), "0-3:2 3-5:3 5-8:1 ");
}

TEST(AddedTokens, TakesWhiteSpaceAlong) {
  const AddedTokens before({{.text = "M", .id = 1, .takes_space_before = true}});
  EXPECT_EQ(matches(before, "a \u00a0\tM M"), "1-6:1 6-8:1 ");
  const AddedTokens after({{.text = "M", .id = 1, .takes_space_after = true}});
  EXPECT_EQ(matches(after, "M \u3000\nb M"), "0-6:1 8-9:1 ");
  const AddedTokens both({{.text = "M", .id = 1, .takes_space_before = true, .takes_space_after = true}});
  EXPECT_EQ(matches(both, " M  M "), "0-4:1 4-6:1 ");  // white space belongs to one match
}

TEST(AddedTokens, AreNowhereWhenThereAreNone) {
  EXPECT_EQ(matches(AddedTokens(), "text"), "");
}

}  // namespace
}  // namespace megalith
