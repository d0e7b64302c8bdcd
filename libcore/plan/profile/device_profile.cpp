#include "libcore/plan/profile/device_profile.h"

#include <algorithm>
#include <map>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/json/json_names.h"

namespace megalith {
namespace {

constexpr char kFormat[] = "megalith-device-profile";
constexpr int64_t kVersion = 1;

struct Size {
  const char* name;
  int64_t ProfilePoint::*member;
};
constexpr Size kProductSizes[] = {
    {"rows", &ProfilePoint::rows}, {"columns", &ProfilePoint::columns}, {"depth", &ProfilePoint::depth}};
constexpr Size kAttentionSizes[] = {
    {"sequence", &ProfilePoint::sequence}, {"heads", &ProfilePoint::heads}, {"head", &ProfilePoint::head}};

constexpr Size kMatrixSizes[] = {{"rows", &ProfilePoint::rows}, {"columns", &ProfilePoint::columns}};

std::span<const Size> sizes_of(ProfiledKind kind) {
  if (kind == ProfiledKind::kProduct) return kProductSizes;
  if (kind == ProfiledKind::kAttention || kind == ProfiledKind::kAttentionGradient) return kAttentionSizes;
  return kMatrixSizes;
}

/// Refuses a value of the profile that is being read: "p.json: points[3].rows is 1.5, wanted …".
template <class... Parts>
[[noreturn]] void refuse(const Json& value, const Parts&... wanted) {
  constexpr size_t kShown = 60;
  fail(ErrorKind::kData, JsonNames::of(value), " is ",
       value.is_string() ? quote(shortened(value.as_string(), kShown)) : shortened(value.dump(), kShown),
       ", wanted ", wanted..., "; measure the device again");
}

/// The valid values of a member, in addition to its type: numbers that are at least `low` (above `low` if
/// `above`) and less than `end`, or the words that this version writes.
struct Rule {
  double low = 0, end = 0;
  bool above = false;
  std::span<const std::string_view> words = {};
};
Rule from(double low, double end) {
  return {.low = low, .end = end};
}
Rule above_zero(double end) {
  return {.end = end, .above = true};
}
constexpr double kMostSize = 2147483648;  // the square of a size does not overflow

[[noreturn]] void refuse_other_words(const Json& value, std::span<const std::string_view> known) {
  refuse(value, "one of ", join(std::vector<std::string>(known.begin(), known.end()), ", "));
}

void read(const Json& value, std::string& out, const Rule& rule) {
  const auto& words = rule.words;
  if (!words.empty() &&
      (!value.is_string() || std::find(words.begin(), words.end(), value.as_string()) == words.end()))
    refuse_other_words(value, words);
  out = value.as_string();
}
void read(const Json& value, double& out, const Rule& rule) {
  out = value.is_number() ? value.as_double() : rule.end;
  if (!(rule.above ? out > rule.low : out >= rule.low) || !(out < rule.end))
    refuse(value, "a number ", rule.above ? "above " : "from ", format_double(rule.low), " and below ",
           format_double(rule.end));
}
void read(const Json& value, int64_t& out, const Rule& rule) {
  const auto low = static_cast<int64_t>(rule.low), most = static_cast<int64_t>(kMostSize);
  if (!value.is_int() || value.as_int() < low || value.as_int() > most)
    refuse(value, "a whole number from ", low, " to ", most);
  out = value.as_int();
}
void read(const Json& value, ProfiledKind& out, const Rule&) {
  std::vector<std::string_view> known;
  for (const auto& [name, kind] : enum_names(out)) {
    if (value.is_string() && value.as_string() == name) return void(out = kind);
    known.emplace_back(name);
  }
  refuse_other_words(value, known);
}

/// Visitors that write and read the members of a point or a profile. The members are listed once for both
/// visitors.
struct Writer {
  Json& object;
  template <class T>
  void operator()(const char* name, const T& value, const Rule& = {}) const {
    if constexpr (std::is_enum_v<T>)
      object.set(name, enum_name(value));
    else
      object.set(name, value);
  }
};
struct Reader {
  const Json& object;
  template <class T>
  void operator()(const char* name, T& value, const Rule& rule = {}) const {
    read(object[name], value, rule);
  }
};

template <class Point>
void visit_point(Point& point, const auto& v) {
  constexpr double kMostWork = 1e30, kMostSeconds = 1e6, kMostSpread = 1e6;
  v("kind", point.kind);
  v("op", point.op, Rule{.words = ops_of(point.kind)});
  for (const Size& size : sizes_of(point.kind)) v(size.name, point.*size.member, from(1, kMostSize));
  const bool works = point.kind != ProfiledKind::kStart, computes = point.kind != ProfiledKind::kMemory;
  v("flops", point.flops, works && computes ? above_zero(kMostWork) : from(0, kMostWork));
  v("bytes", point.bytes, works ? above_zero(kMostWork) : from(0, kMostWork));
  v("seconds", point.seconds, above_zero(kMostSeconds));
  v("spread", point.spread, from(0, kMostSpread));
  v("samples", point.samples, from(kLeastSamples, kMostSize));
}

/// `points`: the number of points.
template <class Profile>
void visit_profile(Profile& profile, size_t points, const auto& v) {
  static constexpr std::string_view kBackends[] = {"cpu", "cuda"}, kDTypes[] = {"fp32", "bf16", "fp16"};
  constexpr double kMostSeconds = 1e9;
  v("device", profile.device);
  v("processor", profile.processor);
  v("backend", profile.backend, Rule{.words = kBackends});
  v("dtype", profile.dtype, Rule{.words = kDTypes});
  v("threads", profile.threads, from(1, kMostSize));
  v("date", profile.date);
  v("megalith", profile.version);
  v("seconds", profile.seconds, above_zero(kMostSeconds));
  v("grid", profile.grid, from(static_cast<double>(points), kMostSize));
}

/// Refuses two points of one op and size. The file would have been put together from several profiles, and
/// the fit would give that point too much weight.
void check_points(const std::vector<ProfilePoint>& points, const std::string& path) {
  const auto products = std::count_if(points.begin(), points.end(),
                                      [](const auto& point) { return point.kind == ProfiledKind::kProduct; });
  if (products < kLeastProducts)
    fail(ErrorKind::kData, path, ": points has ", products, " matrix products, wanted at least ",
         kLeastProducts, "; measure for longer (--seconds)");
  std::map<std::pair<PointKey, std::string>, size_t> seen;
  for (size_t i = 0; i < points.size(); ++i)
    if (const auto [first, fresh] = seen.emplace(std::pair(key_of(points[i]), points[i].op), i); !fresh)
      fail(ErrorKind::kData, path, ": points[", i, "] has the op and the sizes of points[", first->second,
           "], wanted each once; measure the device again");
}

}  // namespace

std::span<const std::string_view> ops_of(ProfiledKind kind) {
  static constexpr std::string_view kForms[] = {"forward", "input-gradient", "weight-gradient"},
                                    kAttention[] = {"attention"}, kGradient[] = {"attention_grad"},
                                    kElements[] = {"gelu", "layer_norm", "gelu_grad", "layer_norm_grad"};
  if (kind == ProfiledKind::kProduct) return kForms;
  if (kind == ProfiledKind::kAttention) return kAttention;
  if (kind == ProfiledKind::kAttentionGradient) return kGradient;
  return kElements;
}

PointKey key_of(const ProfilePoint& point) {
  std::vector<int64_t> sizes;
  for (const Size& size : sizes_of(point.kind)) sizes.push_back(point.*size.member);
  return {point.kind, point.kind == ProfiledKind::kStart ? point.op : "", std::move(sizes)};
}

Json to_json(const DeviceProfile& profile) {
  Json json = Json::Object{{"format", kFormat}, {"version", kVersion}};
  visit_profile(profile, profile.points.size(), Writer{json});
  Json::Array& points = json.set("points", Json::array()).as_array();
  for (const ProfilePoint& point : profile.points)
    visit_point(point, Writer{points.emplace_back(Json::object())});
  return json;
}

bool is_device_profile(std::string_view text) {
  return text.find(concat('"', kFormat, '"')) != text.npos;
}

DeviceProfile parse_device_profile(std::string_view text, const std::string& path) {
  const Json json = Json::parse(text, path);
  const JsonNames names(json, path);
  if (const int64_t version = json["version"].as_int(); version != kVersion)
    fail(ErrorKind::kData, path, ": the profile has version ", version, ", wanted ", kVersion,
         "; measure the device with this megalith-autoplan");
  const Json::Array& points = json["points"].as_array();
  if (points.size() > kMostPoints)
    fail(ErrorKind::kData, path, ": points has ", points.size(), " points, wanted at most ", kMostPoints,
         "; a fit to more would take minutes");
  DeviceProfile profile;
  visit_profile(profile, points.size(), Reader{json});
  for (const Json& point : points) visit_point(profile.points.emplace_back(), Reader{point});
  check_points(profile.points, path);
  return profile;
}

}  // namespace megalith
