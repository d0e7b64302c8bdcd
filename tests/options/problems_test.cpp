#include "libcore/options/problems.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

using Names = std::vector<std::string>;

TEST(Phrase, KeepsTheOptionsOfItsParts) {
  const Phrase empty;
  EXPECT_TRUE(empty.empty());
  const Phrase product(Opt{"tensor"}, ' ', 2, " * ", Opt{"pipeline"}, ' ', 4);
  const Phrase whole(product, " is not ", Opt{"world-size"}, " 9, a word such as --depth aside");
  EXPECT_EQ(whole.text(), "--tensor 2 * --pipeline 4 is not --world-size 9, a word such as --depth aside");
  EXPECT_EQ(whole.options(), (Names{"tensor", "pipeline", "world-size"}));
}

TEST(Problems, SayWhatTheyAreAbout) {
  Problems problems;
  problems.add(Opt{"a"}, " and ", Opt{"b"}, " contradict each other");
  problems.add_at("run.yaml:3", "unknown option \"c\"");
  problems.missing({"d"}, " (or ", Opt{"e"}, ')');
  ASSERT_EQ(problems.list().size(), 3U);
  const Problem &both = problems.list()[0], &in_file = problems.list()[1], &missing = problems.list()[2];
  EXPECT_EQ(both.option, "");
  EXPECT_EQ(both.options, (Names{"a", "b"}));
  EXPECT_EQ(in_file.place, "run.yaml:3");
  EXPECT_EQ(in_file.message(), "run.yaml:3: unknown option \"c\"");
  EXPECT_TRUE(missing.missing);
  EXPECT_EQ(missing.option, "d");
  EXPECT_EQ(missing.message(), "--d is missing (or --e)");
  EXPECT_FALSE(both.missing);
}

TEST(Problems, SayWhatWasFoundAndWhatWasWanted) {
  Problems problems;
  problems.refuse({"depth"}, 3.5, "an even number");
  problems.add(
      Problem{.text = "run.yaml:3: depth", .found = "\"x\"", .wanted = "a number", .note = "so far"});
  EXPECT_EQ(problems.text(),
            "--depth 3.5: wanted an even number\nrun.yaml:3: depth \"x\": wanted a number (so far)");
  const Problem& refused = problems.list().front();
  EXPECT_EQ(refused.option, "depth");
  EXPECT_EQ(refused.found, "3.5");
  EXPECT_EQ(refused.wanted, "an even number");
  EXPECT_EQ(refused.options, Names{"depth"});
}

TEST(Problems, AreOneErrorWithALineForEach) {
  Problems problems;
  EXPECT_NO_THROW(problems.throw_if_any());
  problems.add("one");
  problems.add(Problem{.text = "two", .note = "run.yaml:3 gives --b"});
  try {
    problems.throw_if_any(ErrorKind::kData);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_STREQ(error.what(), "one\n  two (run.yaml:3 gives --b)");
  }
  EXPECT_EQ(problems.text("; "), "one; two (run.yaml:3 gives --b)");
}

}  // namespace
}  // namespace megalith
