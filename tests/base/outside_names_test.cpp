#include "libcore/base/outside_names.h"

#include <string>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(OutsideNames, AreEscapedInsideMessagesThatKeepTheirLines) {
  note_outside_name("--input=/data/one\ntwo/three\tfour.idx");
  EXPECT_EQ(escape_outside_names("x: error: /data/one\ntwo: no\nsee --help\t!"),
            "x: error: /data/one\\x0atwo: no\nsee --help\t!");
  EXPECT_EQ(escape_outside_names("three\tfour.idx, three\tfour.idx.json"),
            "three\\x09four.idx, three\\x09four.idx.json");
  EXPECT_EQ(escape_outside_names("one\n two\n"), "one\n two\n");
}

TEST(OutsideNames, TakesTheLongestOfTwo) {
  note_outside_name("b\nc");
  note_outside_name("a\nb\nc");
  EXPECT_EQ(escape_outside_names("a\nb\nc b\nc"), "a\\x0ab\\x0ac b\\x0ac");
}

// A separator may be a word of the command line, and is no name.
TEST(OutsideNames, AreNotLineEndsAlone) {
  for (const char* word : {"\n", "\t", " \n", "--separator=\n", "\n/\n", ""}) note_outside_name(word);
  EXPECT_EQ(escape_outside_names("a\nb \nc\td"), "a\nb \nc\td");
}

TEST(OutsideNames, AreBounded) {
  for (int i = 0; i < 100'000; ++i) note_outside_name("many\n" + std::to_string(i));
  EXPECT_EQ(escape_outside_names("many\n7!"), "many\\x0a7!");
}

}  // namespace
}  // namespace megalith
