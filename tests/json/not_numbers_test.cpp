#include "libcore/json/not_numbers.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

TEST(NotNumbers, AreFoundWithTheirPaths) {
  for (const auto& [text, found] :
       {std::pair<std::string, std::string>{"NaN", "the whole is NaN"},
        {R"({"a": NaN})", "a is NaN"},
        {R"({"a":-Infinity,"b":1})", "a is -Infinity"},
        {R"({"a": "x", "b": {"c": [1, [2, Infinity]]}})", "b.c[1][1] is Infinity"},
        {R"({"a": [{"b": 1}, {"b": 1e999}]})", "a[1].b is 1e999"},
        {R"({"a": {"b": 1}, "c": -1e400})", "c is -1e400"},
        {R"([{}, [], NaN])", "[2] is NaN"},
        {R"({"NaN": "NaN, \\", "b": "\"", "c": NaN)", "c is NaN"}})
    EXPECT_EQ(find_no_number(text), found) << text;
}

TEST(NotNumbers, AreNoneInOtherTexts) {
  for (const std::string text : {R"({"a": [1, -2.5e3, null, true], "b": "NaN"})", "{\"a\": nano}", "1e-999",
                                 "", "{", "\"", "\"\\", "]]}", "{\"a\": inf}"})
    EXPECT_EQ(find_no_number(text), "") << text;
}

TEST(NotNumbers, AreNamedByTheParser) {
  for (const std::string value : {"NaN", "Infinity", "-Infinity", "1e999"}) {
    try {
      (void)Json::parse(R"({"model_type": "gpt2", "rope": {"factor": )" + value + "}}", "config.json");
      ADD_FAILURE() << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_EQ(std::string(error.what()),
                "config.json: rope.factor is " + value + ", wanted a finite number or null");
    }
  }
}

}  // namespace
}  // namespace megalith
