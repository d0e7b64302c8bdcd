// The expected texts are those of Python 3.11's str.
#include "libcore/text/unicode/python_text.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(PythonText, StripsWhatPythonStrips) {
  EXPECT_EQ(stripped(" \t\n\u00a0a b\u3000\x1c"), "a b");
  EXPECT_EQ(right_stripped(" a b\u2003\r\n"), " a b");
  EXPECT_EQ(stripped("\u200b a"), "\u200b a");  // no white space in Unicode
  for (const char* const blank : {"", " ", "\u3000 \n"}) {
    EXPECT_EQ(stripped(blank), "");
    EXPECT_EQ(right_stripped(blank), "");
  }
}

TEST(PythonText, CountsPartsBetweenBlanks) {
  EXPECT_EQ(blank_separated_parts(""), 1);
  EXPECT_EQ(blank_separated_parts("one"), 1);
  EXPECT_EQ(blank_separated_parts(" a b\u2003c\x1d "), 5);
  EXPECT_EQ(blank_separated_parts("a  \n b"), 2);
}

TEST(PythonText, CapitalizesAsPythonDoes) {
  EXPECT_EQ(capitalized(""), "");
  EXPECT_EQ(capitalized("hello WORLD"), "Hello world");
  EXPECT_EQ(capitalized("\u00e9LAN \u0391\u03a3"), "\u00c9lan \u03b1\u03c2");
  EXPECT_EQ(capitalized("\u0391\u03a3"), "\u0391\u03c2");
  EXPECT_EQ(capitalized("\u01c6 X"), "\u01c5 x");  // a letter whose title case differs from its upper case
  EXPECT_EQ(capitalized("\u0130X"), "\u0130x");
  EXPECT_EQ(capitalized("\u03a3\u0391 \u03a3"), "\u03a3\u03b1 \u03c3");
  EXPECT_EQ(capitalized("9A"), "9a");
}

TEST(PythonText, ReplacesFromLeftToRightWithoutOverlap) {
  EXPECT_EQ(replaced("a   b    c", "  ", " "), "a  b  c");
  EXPECT_EQ(replaced("aXbX", "X", ""), "ab");
  EXPECT_EQ(replaced("", "a", "b"), "");
}

}  // namespace
}  // namespace megalith
