#include "libcore/text/patterns/pattern_parser.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/patterns/properties.h"

namespace megalith {
namespace {

std::string refusal(std::string_view regex) {
  try {
    parse_pattern(regex);
  } catch (const UnsupportedPattern& unsupported) {
    return unsupported.what;
  }
  return "";
}

TEST(PatternParser, ReadsSets) {
  const auto set = [](std::string_view regex) {
    PatternNode node = parse_pattern(regex);
    while (node.kind != PatternNode::Kind::kSet) node = PatternNode(node.children[0]);
    return node.set;
  };
  EXPECT_EQ(set("[a-cb]"), CharRanges({{'a', 'c'}}));
  EXPECT_EQ(set("[^b]"), ~CharRanges::one('b'));
  EXPECT_EQ(set("[a-z&&[^bc]]"), CharRanges({{'a', 'a'}, {'d', 'z'}}));
  EXPECT_EQ(set("[^a-z&&[^b]]"), ~(CharRanges({{'a', 'z'}}) & ~CharRanges::one('b')));
  EXPECT_EQ(set("[a[x-z]]"), CharRanges({{'a', 'a'}, {'x', 'z'}}));
  EXPECT_EQ(set("[a-]"), CharRanges({{'a', 'a'}, {'-', '-'}}));
  EXPECT_EQ(set("\\P{L}"), ~*char_property("L"));
  EXPECT_EQ(set("[\\p{^L}]"), ~*char_property("L"));
  EXPECT_EQ(set("(?i:k)"), CharRanges({{'K', 'K'}, {'k', 'k'}, {0x212A, 0x212A}}));
}

TEST(PatternParser, NamesWhatIsNotSupported) {
  const std::pair<const char*, const char*> refused[] = {
      {"", "match of nothing"},
      {"a*", "match of nothing"},
      {"(a", "group without an end"},
      {"a)", "closing parenthesis"},
      {"[a", "end"},
      {"[]a]", "begins with ]"},
      {"[b-a]", "range"},
      {"[[:alpha:]]", "POSIX"},
      {"\\p{Unheard}", "the property \"Unheard\""},
      {"(?<=a)b", "the group \"(?<=\""},
      {"(?>a)", "the group"},
      {"a(?=bc)", "lookahead of more than one character"},
      {"a(?=b{2})", "lookahead of more than one character"},
      {"(a)\\1", "the escape \\1"},
      {"a\\b", "the escape \\b"},
      {"^a", "the sign ^"},
      {"*a", "the sign *"},
      {"a{2}?", "the quantifier {2}?"},
      {"a{3,2}", "the quantifier"},
      {"a{9999}", "the quantifier"},
      {"a{x}", "the quantifier"},
      {"a{}", "the quantifier"},
      {"a{,}", "the quantifier"},
      {"(?:ab)++", "possessive"},
      {"(?:a*)*b", "repetition of what may be empty"},
      {"(?i:fi)", "one character"},
      {"(?i:\\p{L})", "(?i)"},
      {"(?i:\u00e9)", "(?i)"},
      {"\\", "backslash"},
      {"\\xE9", "escape"},
  };
  for (const auto& [regex, what] : refused)
    EXPECT_NE(refusal(regex).find(what), std::string::npos) << regex << ": " << quote(refusal(regex));
  EXPECT_NE(refusal(std::string(300, '(') + "a" + std::string(300, ')')), "");
  EXPECT_NE(refusal(std::string(300, '[') + "a" + std::string(300, ']')), "");
}

}  // namespace
}  // namespace megalith
