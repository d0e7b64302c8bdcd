#include "libcore/json/json.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

TEST(Json, KeepsIntegersBeyond64BitsAsDoubles) {
  const Json json = Json::parse(
      R"({"a": 1000000000000000019884624838656, "b": -18446744073709551616, "c": [18446744073709551616],
                                    "d": 9223372036854775807, "e": -9223372036854775808, "f": 0.12345678901234567890123})",
      "x");
  EXPECT_EQ(json["a"].as_double(), 1e30);
  EXPECT_FALSE(json["a"].is_int());
  EXPECT_EQ(json["b"].as_double(), -18446744073709551616.0);
  EXPECT_EQ(json["c"].as_array()[0].as_double(), 18446744073709551616.0);
  EXPECT_EQ(json["d"].as_int(), INT64_MAX);
  EXPECT_EQ(json["e"].as_int(), INT64_MIN);
  EXPECT_EQ(json["f"].as_double(), 0.12345678901234567890123);
}

TEST(Json, LeavesDigitsInStringsAlone) {
  const Json json =
      Json::parse(R"({"18446744073709551616": "a\"18446744073709551616\\", "n": 18446744073709551616})", "x");
  EXPECT_EQ(json["18446744073709551616"].as_string(), "a\"18446744073709551616\\");
}

// The expected text is that of Python's json.dumps("…", ensure_ascii=False).
TEST(JsonQuote, EscapesAsPython) {
  EXPECT_EQ(json_quote(std::string_view("\0\b\f\n\r\t\x1f\x7f\"\\/\u00e9", 13)),
            "\"\\u0000\\b\\f\\n\\r\\t\\u001f\x7f\\\"\\\\/\u00e9\"");
}

TEST(Json, StillRefusesWhatIsNoNumber) {
  for (const char* text :
       {"01", "1.", "-", "18446744073709551616x", "018446744073709551616", "1e", "[18446744073709551616"})
    EXPECT_THROW(Json::parse(text, "x"), Error) << text;
}

}  // namespace
}  // namespace megalith
