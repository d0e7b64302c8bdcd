// The log escapes a line end unless two blanks follow (printable_message), so that no name looks like a
// message. Our own messages with several lines must follow that rule.
#include <cctype>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"

namespace megalith {
namespace {

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The contents of the string literals of the statement that begins a text, one after the other.
std::string literals(std::string_view text) {
  std::string found;
  for (size_t at = 0; at < text.size() && text[at] != ';'; ++at) {
    const char quote = text[at];
    const bool character = quote == '\'' && !in_word(text[at - 1]);  // not the ' of 10'000
    if (quote != '"' && !character) continue;
    for (++at; at < text.size() && text[at] != quote; ++at) {
      if (quote == '"') found += text[at];
      if (text[at] != '\\') continue;
      ++at;
      if (quote == '"') found += text[at];
    }
  }
  return found;
}

/// Whether literals have the escape of a line end without two blanks behind it.
bool breaks_rule(std::string_view literals) {
  constexpr std::string_view kEscape = "\\n";
  for (size_t at = literals.find(kEscape); at != std::string_view::npos; at = literals.find(kEscape, at + 1))
    if (!literals.substr(at + kEscape.size()).starts_with("  ")) return true;
  return false;
}

/// The number of statements of a source that fail or log; those that break the rule fail the test.
int check_messages(const std::string& path, std::string_view text) {
  int found = 0;
  for (const std::string_view call : {"fail(", "warn(", "tell(", "log("})
    for (size_t at = text.find(call); at != std::string_view::npos; at = text.find(call, at + 1)) {
      const char before = at == 0 ? ' ' : text[at - 1];
      if (in_word(before) || before == ':') continue;
      ++found;
      EXPECT_FALSE(breaks_rule(literals(text.substr(at)))) << path << ": " << text.substr(at, 200);
    }
  return found;
}

TEST(Messages, BeginFurtherLinesWithTwoBlanks) {
  EXPECT_TRUE(breaks_rule(literals("fail(kind, \"a;\\nb\", '\"', 10'000); \"c\"")));
  EXPECT_FALSE(breaks_rule(literals("log(\"a\\n  b\", '\\n'); \"\\n\"")));
  int found = 0;
  for (const char* folder : {"libcore", "apps"})
    for (const std::string& path : test::sources(folder)) found += check_messages(path, test::text_of(path));
  EXPECT_GT(found, 900);
}

}  // namespace
}  // namespace megalith
