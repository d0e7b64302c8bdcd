// Every parser that tests/fuzz/PARSERS lists has a fuzz target with a corpus, and every target is listed.
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {
namespace fs = std::filesystem;
using test::kRoot;
using test::text_of;

/// Maps the name of each target to the file that defines it.
std::map<std::string, std::string> targets() {
  static const test::Pattern kTarget(R"(MEGALITH_FUZZ_TARGET\((\w+)\) \{)");
  std::map<std::string, std::string> found;
  for (const std::string& path : test::sources("tests/fuzz")) {
    const std::string text = text_of(path);
    const test::Pattern::Match match = kTarget.first_in(text);
    if (path.ends_with("_test.cpp") && !match.empty()) found[match[1]] = path;
  }
  return found;
}

TEST(FuzzTargets, AttackEveryListedParser) {
  static const test::Pattern kLine(R"((\S+\.h) (\w+): (\w+))");
  const std::map<std::string, std::string> known = targets();
  std::set<std::string> unlisted;
  for (const auto& [name, path] : known) unlisted.insert(name);
  for (const std::string& line : test::table_lines("tests/fuzz/PARSERS")) {
    const test::Pattern::Match match = kLine.whole(line);
    ASSERT_FALSE(match.empty()) << line;
    const std::string header = "libcore/" + match[1], target = match[3];
    ASSERT_TRUE(fs::exists(kRoot / header)) << line;
    EXPECT_TRUE(test::Pattern("\\b" + match[2] + "\\b").is_in(text_of(header))) << line;
    ASSERT_TRUE(known.contains(target)) << line << ": there is no such target";
    EXPECT_NE(text_of(known.at(target)).find('"' + header + '"'), std::string::npos)
        << line << ": " << known.at(target) << " does not include the header";
    unlisted.erase(target);
  }
  unlisted.erase("bpe_text");  // it attacks no parser: it compares encoding and decoding
  EXPECT_EQ(unlisted, std::set<std::string>{}) << "not in tests/fuzz/PARSERS";
}

TEST(FuzzTargets, BeginWithACorpusAndLieInAFileOfTheirName) {
  for (const auto& [name, path] : targets()) {
    const fs::path corpus = kRoot / "tests/fuzz/corpus" / name;
    ASSERT_TRUE(fs::is_directory(corpus)) << corpus;
    EXPECT_FALSE(fs::is_empty(corpus)) << corpus;
    EXPECT_EQ(fs::path(path).filename(), name + "_test.cpp");
  }
}

}  // namespace
}  // namespace megalith
