// Every parser that tests/fuzz/PARSERS lists has a fuzz target with a corpus, and every target is listed.
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"

namespace megalith {
namespace {
namespace fs = std::filesystem;
using test::kRoot;
using test::text_of;

/// Maps the name of each target to the file that defines it.
std::map<std::string, std::string> targets() {
  static const std::regex kTarget(R"(MEGALITH_FUZZ_TARGET\((\w+)\) \{)");
  std::map<std::string, std::string> found;
  for (const std::string& path : test::sources("tests/fuzz")) {
    const std::string text = text_of(path);
    std::smatch match;
    if (path.ends_with("_test.cpp") && std::regex_search(text, match, kTarget)) found[match[1]] = path;
  }
  return found;
}

TEST(FuzzTargets, AttackEveryListedParser) {
  static const std::regex kLine(R"((\S+\.h) (\w+): (\w+))");
  const std::map<std::string, std::string> known = targets();
  std::set<std::string> unlisted;
  for (const auto& [name, path] : known) unlisted.insert(name);
  for (const std::string& line : test::table_lines("tests/fuzz/PARSERS")) {
    std::smatch match;
    ASSERT_TRUE(std::regex_match(line, match, kLine)) << line;
    const std::string header = "libcore/" + match[1].str(), target = match[3];
    ASSERT_TRUE(fs::exists(kRoot / header)) << line;
    EXPECT_TRUE(std::regex_search(text_of(header), std::regex("\\b" + match[2].str() + "\\b"))) << line;
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
