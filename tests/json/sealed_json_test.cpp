#include "libcore/json/sealed_json.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(SealedJson, EndsWithTheHashOfItsText) {
  const Json object = Json::Object{{"a", 1}, {"b", "text"}};
  const std::string text = sealed(object);
  EXPECT_EQ(seal_of(text), Seal::kWhole);
  Json parsed = Json::parse(text, "text");
  ASSERT_EQ(parsed.as_object().back().first, "checksum");
  parsed.as_object().pop_back();
  EXPECT_EQ(parsed, object);
}

TEST(SealedJson, IsBrokenByAnyChange) {
  const std::string text = sealed(Json::Object{{"a", Json::Array{1, 2}}, {"b", Json::object()}});
  for (size_t at = 0; at < text.size(); ++at) {
    std::string bad = text;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_NE(seal_of(bad), Seal::kWhole) << at;
    EXPECT_NE(seal_of(text.substr(0, at)), Seal::kWhole) << at;
  }
  EXPECT_EQ(seal_of(text + " "), Seal::kBroken);
  EXPECT_EQ(seal_of("{\n  \"a\": 1\n}\n"), Seal::kNone);
}

}  // namespace
}  // namespace megalith
