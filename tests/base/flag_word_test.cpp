#include "libcore/base/flag_word.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

// Tests the words that PyYAML's SafeLoader reads as booleans, and also 1 and 0.
TEST(FlagWord, ReadsWhatPyYamlReads) {
  for (const char* word : {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "1"})
    EXPECT_EQ(parse_flag(word), true) << word;
  for (const char* word : {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "0"})
    EXPECT_EQ(parse_flag(word), false) << word;
  for (const char* word : {"", "maybe", "y", "n", "2", "none", "true ", "nope"})
    EXPECT_FALSE(parse_flag(word)) << word;
}

}  // namespace
}  // namespace megalith
