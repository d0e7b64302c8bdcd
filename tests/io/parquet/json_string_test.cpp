#include "libcore/io/parquet/json_string.h"

#include <gtest/gtest.h>

#include "libcore/json/json.h"

namespace megalith {
namespace {

TEST(JsonString, EscapesWhatJsonWants) {
  EXPECT_EQ(json_string(""), "\"\"");
  EXPECT_EQ(json_string("a\"b\\c/\n\r\t\b\f\x01\x1f\x7f"), R"("a\"b\\c/\n\r\t\b\f\u0001\u001f)"
                                                           "\x7f\"");
  EXPECT_EQ(json_string("\xff"), "\"\xff\"") << "invalid UTF-8 is found by whoever parses the line";
}

TEST(JsonString, IsTheSameAtEveryOffset) {
  for (size_t before = 0; before < 40; ++before)
    for (const char c : {'"', '\n', 'x', '\x1f', ' '}) {
      const std::string text = std::string(before, 'a') + c + std::string(20, 'b') + c;
      EXPECT_EQ(Json::parse(json_string(text), "test").as_string(), text);
    }
  const std::string longer(100000, '\n');
  EXPECT_EQ(Json::parse(json_string(longer), "test").as_string(), longer);
}

}  // namespace
}  // namespace megalith
