#include "libcore/json/json_names.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

template <class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }
  return "nothing";
}

TEST(JsonNames, NameTheFileAndTheWayToAValue) {
  const Json json = Json::parse(R"({"a": [1, {"b": "x"}], "c": {}})", "f.json");
  EXPECT_EQ(message_of([&] { json["c"].as_int(); }), "JSON value is not an integer");
  const JsonNames names(json, "f.json");
  EXPECT_EQ(message_of([&] { json["a"].as_array()[1]["b"].as_int(); }), "f.json: a[1].b is not an integer");
  EXPECT_EQ(message_of([&] { json["c"]["d"]; }), "f.json: c has no key \"d\"");
  EXPECT_EQ(message_of([&] { json["d"]; }), "f.json: the whole has no key \"d\"");
  EXPECT_EQ(message_of([&] { json["a"]["d"]; }), "f.json: a is not an object, and has no key \"d\"");
  const Json other = Json::array();
  EXPECT_EQ(message_of([&] { other.as_string(); }), "JSON value is not a string");
}

TEST(JsonNames, HoldForEachRootOfAThreadUntilTheyEnd) {
  const Json one = Json::object(), two = Json::object();
  {
    const JsonNames outer(one, "one");
    {
      const JsonNames inner(two, "two");
      EXPECT_EQ(message_of([&] { one.as_int(); }), "one: the whole is not an integer");
      EXPECT_EQ(message_of([&] { two.as_int(); }), "two: the whole is not an integer");
    }
    EXPECT_EQ(message_of([&] { two.as_int(); }), "JSON value is not an integer");
  }
  EXPECT_EQ(message_of([&] { one.as_int(); }), "JSON value is not an integer");
}

}  // namespace
}  // namespace megalith
