#include "libcore/data/cache/python_text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

std::string dumped(const Json& value) {
  std::string text;
  append_python_json(text, value);
  return text;
}

// The expected texts are those of Python 3.11's repr() and json.dumps(…, indent=4).
TEST(PythonText, WritesFloatsAsRepr) {
  EXPECT_EQ(python_repr(0.1), "0.1");
  EXPECT_EQ(python_repr(1.0), "1.0");
  EXPECT_EQ(python_repr(0.0), "0.0");
  EXPECT_EQ(python_repr(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(python_repr(0.0001), "0.0001");
  EXPECT_EQ(python_repr(0.00001), "1e-05");
  EXPECT_EQ(python_repr(1.5e-7), "1.5e-07");
  EXPECT_EQ(python_repr(1e15), "1000000000000000.0");
  EXPECT_EQ(python_repr(1e16), "1e+16");
  EXPECT_EQ(python_repr(1e100), "1e+100");
}

TEST(PythonText, WritesTextsAsRepr) {
  EXPECT_EQ(python_repr("a"), "'a'");
  EXPECT_EQ(python_repr("it's"), "\"it's\"");
  EXPECT_EQ(python_repr("it's \"so\""), "'it\\'s \"so\"'");
  EXPECT_EQ(python_repr(std::vector<std::string>{"a", "b\\"}), "['a', 'b\\\\']");
  EXPECT_EQ(python_repr(std::vector<std::string>{}), "[]");
}

TEST(PythonText, DumpsJsonAsPython) {
  EXPECT_EQ(dumped(Json::array()), "[]");
  EXPECT_EQ(dumped(Json::object()), "{}");
  EXPECT_EQ(dumped(Json::parse(R"({"a": [1, 0.5, null, true, {"b": []}], "c": {}})", "test")), R"({
    "a": [
        1,
        0.5,
        null,
        true,
        {
            "b": []
        }
    ],
    "c": {}
})");
}

TEST(PythonText, EscapesTexts) {
  EXPECT_EQ(dumped("a\"\\\n\t\r\b\f/\x1f\x7f"), R"("a\"\\\n\t\r\b\f/\u001f\u007f")");
  EXPECT_EQ(dumped("\u00e9 \u20ac \U0001F600"), R"("\u00e9 \u20ac \ud83d\ude00")");
  EXPECT_EQ(dumped("a\xff\xc3"), R"("a\udcff\udcc3")");  // os.fsdecode(b"a\xff\xc3")
}

}  // namespace
}  // namespace megalith
