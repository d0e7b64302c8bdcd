#include "libcore/plan/profile/device_profile.h"

#include <tuple>

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

/// The complaint about a profile to which `change` was applied.
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
  contains(complaint([](Json& json) { point(json, 2).set("seconds", nullptr); }),
           "points[2].seconds is null");
  contains(complaint([](Json& json) { point(json, 1).set("kind", "sorting"); }),
           "points[1].kind is \"sorting\"");
  contains(complaint([](Json& json) { point(json, 0).set("rows", 0); }), "points[0].rows is 0");
  contains(complaint([](Json& json) { json.set("threads", "two"); }), "threads is \"two\"");
}

// Numbers that a cast to an integer would change, or that no device can have or reach.
TEST(DeviceProfile, RefusesNumbersThatNoMeasurementHas) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find("p.json: " + part), std::string::npos) << text;
  };
  for (const char* const size : {"rows", "columns", "depth"})
    for (const Json& value : {Json(1e300), Json(1.5), Json(0.5), Json(-3), Json(int64_t{1} << 32), Json("8")})
      expect(
          complaint([&](Json& json) { point(json, 0).set(size, value); }),
          concat("points[0].", size, " is ", value.dump(), ", wanted a whole number from 1 to 2147483648"));
  const std::tuple<const char*, double, const char*> kNumbers[] = {
      {"seconds", 1e308, ", wanted a number above 0 and below 1e+06"},
      {"seconds", 0, ", wanted a number above 0"},
      {"flops", 1e300, ", wanted a number above 0 and below 1e+30"},
      {"bytes", 1e300, ", wanted a number above 0 and below 1e+30"},
      {"spread", -0.1, ", wanted a number from 0 and below 1e+06"}};
  for (const auto& [name, value, wanted] : kNumbers)
    expect(complaint([&key = name, &number = value](Json& json) { point(json, 0).set(key, number); }),
           concat("points[0].", name, " is ", Json(value).dump(), wanted));
  expect(complaint([](Json& json) { json.set("threads", 1.5); }), "threads is 1.5, wanted a whole number");
}

TEST(DeviceProfile, RefusesWordsAndCountsThatItDoesNotWrite) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find("p.json: " + part), std::string::npos) << text;
  };
  expect(complaint([](Json& json) { point(json, 0).set("op", "sorting"); }),
         "points[0].op is \"sorting\", wanted one of forward, input-gradient, weight-gradient");
  expect(complaint([](Json& json) { json.set("backend", "tpu"); }), "backend is \"tpu\", wanted one of cpu");
  expect(complaint([](Json& json) { json.set("dtype", "int8"); }), "dtype is \"int8\", wanted one of fp32");
  expect(complaint([](Json& json) { json.set("grid", -3); }), "grid is -3, wanted a whole number from 120");
  expect(complaint([](Json& json) { point(json, 4).set("samples", 2); }),
         "points[4].samples is 2, wanted a whole number from 3");
  expect(complaint([](Json& json) { json.set("seconds", -1); }), "seconds is -1, wanted a number above 0");
}

TEST(DeviceProfile, RefusesPointsThatAreThereTwiceOrTooMany) {
  EXPECT_EQ(
      parse_device_profile(to_json(made_profile({}, profile_grid(8).size())).dump(), "p.json").points.size(),
      profile_grid(8).size())
      << "the whole grid has each once";
  const std::string twice = complaint([](Json& json) {
    const Json first = point(json, 7);
    point(json, 2) = first;
  });
  EXPECT_NE(twice.find("p.json: points[7] has the op and the sizes of points[2]"), std::string::npos)
      << twice;
  const std::string many = complaint([](Json& json) {
    Json points = Json::array();
    for (int i = 1; i <= 2001; ++i) {
      points.push_back(json["points"].as_array()[0]);
      points.as_array().back().set("rows", i);
    }
    json.set("points", std::move(points));
    json.set("grid", 2001);
  });
  EXPECT_NE(many.find("p.json: points has 2001 points, wanted at most 2000"), std::string::npos) << many;
}

}  // namespace
}  // namespace megalith
