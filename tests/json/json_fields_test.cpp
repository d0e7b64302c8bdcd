#include "libcore/json/json_fields.h"

#include <cmath>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/json/json_names.h"

namespace megalith {
namespace {

enum class Weather { kSun, kRain };

struct Place {
  uint64_t line = 1;
  std::string file;
  template <class V>
  void fields(V&& v) {
    v("line", line);
    v("file", file);
  }
};

struct State {
  bool done = false;
  int64_t count = 0;
  uint64_t hash = 0;
  Weather weather = Weather::kSun;
  Json free = Json::object();
  Place place;
  std::vector<int64_t> sizes;
  std::array<Place, 2> pair;
  NamedFields<Place> named;
  template <class V>
  void fields(V&& v) {
    v("done", done);
    v("count", count);
    v("hash", Hex64{hash});
    v("weather", weather);
    v("free", free);
    v("place", place);
    v("sizes", sizes);
    v("pair", pair);
    v("named", named);
  }
};

constexpr char kText[] =
    R"({"done": true, "count": -3, "hash": "00000000000000ff", "weather": 1, "free": [null], )"
    R"("place": {"line": 7, "file": "a"}, "sizes": [4, 5], )"
    R"("pair": [{"line": 1, "file": "b"}, {"line": 2, "file": "c"}], )"
    R"("named": {"z": {"line": 3, "file": ""}, "y": {"line": 4, "file": ""}}})";

std::string message_of(const std::string& text) {
  const Json json = Json::parse(text, "f.json");
  const JsonNames names(json, "f.json");
  try {
    read_fields<State>(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }
  return "nothing";
}

std::string with(const std::string& part, const std::string& other) {
  std::string text = kText;
  return text.replace(text.find(part), part.size(), other);
}

/// A struct with fields that may be missing.
struct Scores {
  int games = 0;
  std::optional<double> best;
  double least = 0.5;
  template <class V>
  void fields(V&& v) {
    v("games", games);
    v("best", best);
    v("least", IfPresent<double>{least});
  }
};

TEST(JsonFields, MayBeMissing) {
  for (const char* const text :
       {R"({"games": 3, "best": 2.5, "least": 0.25})", R"({"games": 3, "least": 0.5})"}) {
    Json written = Json::object();
    add_fields(written, read_fields<Scores>(Json::parse(text, "f.json")));
    EXPECT_EQ(written.dump(), text);
  }
  const auto few = read_fields<Scores>(Json::parse(R"({"games": 1})", "f.json"));
  EXPECT_EQ(few.best, std::nullopt);
  EXPECT_EQ(few.least, 0.5);
  EXPECT_THROW(read_fields<Scores>(Json::parse(R"({"games": 1, "best": "x"})", "f.json")), Error);
}

TEST(JsonFields, ReadWhatIsThere) {
  const auto state = read_fields<State>(Json::parse(kText, "text"));
  EXPECT_TRUE(state.done);
  EXPECT_EQ(state.count, -3);
  EXPECT_EQ(state.hash, 255U);
  EXPECT_EQ(state.weather, Weather::kRain);
  EXPECT_EQ(state.free, Json(Json::Array{Json()}));
  EXPECT_EQ(state.place.line, 7U);
  EXPECT_EQ(state.sizes, (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(state.pair[1].file, "c");
  ASSERT_EQ(state.named.size(), 2U);
  EXPECT_EQ(state.named[0].first, "z");
  EXPECT_EQ(state.named[1].second.line, 4U);
}

TEST(JsonFields, WriteWhatTheyReadInTheirOrder) {
  Json json = Json::object();
  add_fields(json, read_fields<State>(Json::parse(kText, "text")));
  EXPECT_EQ(json.dump(), Json::parse(kText, "text").dump());
}

TEST(JsonFields, ComplainOfWhatIsMissingOrOfAnotherKind) {
  EXPECT_EQ(message_of(with("\"count\": -3, ", "")), "f.json: the whole has no key \"count\"");
  EXPECT_EQ(message_of(with("[4, 5]", "[4, \"5\"]")), "f.json: sizes[1] is not an integer");
  EXPECT_EQ(message_of(with("\"line\": 7", "\"line\": -7")), "f.json: place.line is -7, wanted at least 0");
  EXPECT_EQ(message_of(with("00000000000000ff", "ff")),
            "f.json: hash is \"ff\", wanted 16 hexadecimal digits");
}

struct Ranks {
  int ranks = 0;
  template <class V>
  void fields(V&& v) {
    v("ranks", ranks);
  }
};

TEST(JsonFields, RefuseAnIntegerThatAnIntDoesNotHold) {
  const Json fits = Json::parse("{\"ranks\": -2147483648}", "f.json");
  EXPECT_EQ(read_fields<Ranks>(fits).ranks, std::numeric_limits<int>::min());
  const Json json = Json::parse("{\"ranks\": 4294967296}", "f.json");
  const JsonNames names(json, "f.json");
  try {
    read_fields<Ranks>(json);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "f.json: ranks is 4294967296, wanted an integer of 32 bits");
  }
}

struct Measured {
  double loss = 0;
  template <class V>
  void fields(V&& v) {
    v("loss", Figure{loss});
  }
};

TEST(JsonFields, HaveFiguresThatAreNullIfTheyAreNotFinite) {
  Json json = Json::object();
  add_fields(json, Measured{std::numeric_limits<double>::infinity()});
  EXPECT_EQ(json.dump(), "{\"loss\": null}");
  EXPECT_TRUE(std::isnan(read_fields<Measured>(Json::parse(json.dump(), "f")).loss));
  EXPECT_TRUE(std::isnan(read_fields<Measured>(Json::object()).loss));
  EXPECT_EQ(read_fields<Measured>(Json::parse("{\"loss\": 2}", "f")).loss, 2);
  EXPECT_THROW(read_fields<Measured>(Json::parse("{\"loss\": \"2\"}", "f")), Error);
}

TEST(JsonFields, LeaveTheRestOfAnArrayThatWasShorter) {
  const auto state = read_fields<State>(Json::parse(with(R"(, {"line": 2, "file": "c"}], )", "], "), "text"));
  EXPECT_EQ(state.pair[0].file, "b");
  EXPECT_EQ(state.pair[1].file, "");
}

}  // namespace
}  // namespace megalith
