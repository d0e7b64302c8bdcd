#include "libcore/plan/profile/device_profile.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/plan/profile/profiles.h"

namespace megalith {
namespace {

using test::made_profile;

TEST(DeviceProfile, ComesBackFromItsJson) {
  const DeviceProfile profile = made_profile();
  const std::string text = to_json(profile).dump(1);
  EXPECT_TRUE(is_device_profile(text));
  const DeviceProfile back = parse_device_profile(text, "p.json");
  EXPECT_EQ(to_json(back).dump(), to_json(profile).dump());
  ASSERT_EQ(back.points.size(), profile.points.size());
  EXPECT_EQ(back.points[3].depth, profile.points[3].depth);
  EXPECT_EQ(back.points[3].seconds, profile.points[3].seconds);
  EXPECT_EQ(back.threads, 2);
}

TEST(DeviceProfile, IsKnownFromOtherMeasurements) {
  EXPECT_FALSE(is_device_profile("#  size  count  type  busbw\n"));
  EXPECT_FALSE(is_device_profile("{\"points\": []}"));
}

/// What is said of a profile in which `change` was made.
template <class Change>
std::string complaint(Change change) {
  Json json = to_json(made_profile());
  change(json);
  try {
    parse_device_profile(json.dump(), "p.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }
  return "nothing";
}

Json& point(Json& json, size_t at) {
  return json.set("points", Json(json["points"])).as_array()[at];
}

TEST(DeviceProfile, RefusesWhatIsNoneWithTheFileAndThePlace) {
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("p.json"), std::string::npos) << text;
  };
  contains(complaint([](Json& json) { json.set("version", 9); }), "version 9, wanted 1");
  contains(complaint([](Json& json) { json.set("points", Json::array()); }), "0 matrix products");
  contains(complaint([](Json& json) { point(json, 2).set("seconds", -1.0); }), "points[2].seconds is -1");
  contains(complaint([](Json& json) { point(json, 2).set("seconds", nullptr); }), "points[2].seconds is not");
  contains(complaint([](Json& json) { point(json, 1).set("kind", "sorting"); }),
           "points[1].kind is \"sorting\"");
  contains(complaint([](Json& json) { point(json, 0).set("rows", 0); }), "points[0].rows is 0");
  contains(complaint([](Json& json) { json.set("threads", "two"); }), "threads is not");
}

}  // namespace
}  // namespace megalith
