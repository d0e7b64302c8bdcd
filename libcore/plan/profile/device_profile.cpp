#include "libcore/plan/profile/device_profile.h"

#include <algorithm>
#include <fstream>
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

Json to_json(const ProfilePoint& point) {
  Json json = Json::object();
  json.set("kind", enum_name(point.kind));
  json.set("op", point.op);
  for (const Size& size : sizes_of(point.kind)) json.set(size.name, point.*size.member);
  json.set("flops", point.flops);
  json.set("bytes", point.bytes);
  json.set("seconds", point.seconds);
  json.set("spread", point.spread);
  json.set("samples", point.samples);
  return json;
}

/// "p.json: points[3].rows is 1.5, wanted …": of a value of the profile that is being read.
template <class... Parts>
[[noreturn]] void refuse(const Json& value, const Parts&... wanted) {
  constexpr size_t kShown = 60;
  fail(ErrorKind::kData, JsonNames::of(value), " is ",
       value.is_string() ? quote(shortened(value.as_string(), kShown)) : shortened(value.dump(), kShown),
       ", wanted ", wanted..., "; measure the device again");
}

/// What a measurement can be: from `low`, or with `above` greater than it, and less than `end`.
struct Range {
  double low = 0, end = 0;
  bool above = false;
};

double number(const Json& value, const Range& range) {
  const double found = value.is_number() ? value.as_double() : range.end;
  if (!(range.above ? found > range.low : found >= range.low) || !(found < range.end))
    refuse(value, "a number ", range.above ? "above " : "from ", format_double(range.low), " and below ",
           format_double(range.end));
  return found;
}

int64_t whole(const Json& value, int64_t low) {
  constexpr int64_t kHigh = int64_t{1} << 31;  // squares of which are no overflow
  if (!value.is_int() || value.as_int() < low || value.as_int() > kHigh)
    refuse(value, "a whole number from ", low, " to ", kHigh);
  return value.as_int();
}

/// One of a few words that this version writes.
std::string word_of(const Json& value, std::span<const std::string_view> known) {
  if (!value.is_string() || std::find(known.begin(), known.end(), value.as_string()) == known.end())
    refuse(value, "one of ", join(std::vector<std::string>(known.begin(), known.end()), ", "));
  return value.as_string();
}

ProfiledKind kind_of(const Json& value) {
  std::vector<std::string> known;
  for (const auto& [name, kind] : enum_names(ProfiledKind{})) {
    if (value.is_string() && value.as_string() == name) return kind;
    known.emplace_back(name);
  }
  refuse(value, "one of ", join(known, ", "));
}

ProfilePoint point_of(const Json& json) {
  constexpr double kMostWork = 1e30, kMostSeconds = 1e6;
  ProfilePoint point;
  point.kind = kind_of(json["kind"]);
  point.op = word_of(json["op"], ops_of(point.kind));
  for (const Size& size : sizes_of(point.kind)) point.*size.member = whole(json[size.name], 1);
  const bool works = point.kind != ProfiledKind::kStart;
  point.flops =
      number(json["flops"], {.end = kMostWork, .above = works && point.kind != ProfiledKind::kMemory});
  point.bytes = number(json["bytes"], {.end = kMostWork, .above = works});
  point.seconds = number(json["seconds"], {.end = kMostSeconds, .above = true});
  point.spread = number(json["spread"], {.end = 1e6});
  point.samples = whole(json["samples"], kLeastSamples);
  return point;
}

/// Two points of one op and size: a file that was put together, of which a fit would make more than it says.
void check_points(const std::vector<ProfilePoint>& points, const std::string& path) {
  const auto products = std::count_if(points.begin(), points.end(),
                                      [](const auto& point) { return point.kind == ProfiledKind::kProduct; });
  if (products < kLeastProducts)
    fail(ErrorKind::kData, path, ": points has ", products, " matrix products, wanted at least ",
         kLeastProducts, "; measure for longer (--seconds)");
  std::map<std::pair<PointKey, std::string>, size_t> seen;
  for (size_t i = 0; i < points.size(); ++i)
    if (const auto [first, fresh] = seen.emplace(std::pair(key_of(points[i]), points[i].op), i); !fresh)
      fail(ErrorKind::kData, path, ": points[", i, "] is of the op and the sizes of points[", first->second,
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
  Json json = Json::object();
  json.set("format", kFormat);
  json.set("version", kVersion);
  json.set("device", profile.device);
  json.set("processor", profile.processor);
  json.set("backend", profile.backend);
  json.set("dtype", profile.dtype);
  json.set("threads", profile.threads);
  json.set("date", profile.date);
  json.set("megalith", profile.version);
  json.set("seconds", profile.seconds);
  json.set("grid", profile.grid);
  Json points = Json::array();
  for (const ProfilePoint& point : profile.points) points.push_back(to_json(point));
  json.set("points", std::move(points));
  return json;
}

bool is_device_profile(std::string_view text) {
  return text.find(concat('"', kFormat, '"')) != text.npos;
}

DeviceProfile parse_device_profile(std::string_view text, const std::string& path) {
  static constexpr std::string_view kBackends[] = {"cpu", "cuda"}, kDTypes[] = {"fp32", "bf16", "fp16"};
  const Json json = Json::parse(text, path);
  const JsonNames names(json, path);
  if (const int64_t version = json["version"].as_int(); version != kVersion)
    fail(ErrorKind::kData, path, ": a profile of version ", version, ", wanted ", kVersion,
         "; measure the device with this megalith-autoplan");
  DeviceProfile profile{.device = json["device"].as_string(),
                        .processor = json["processor"].as_string(),
                        .backend = word_of(json["backend"], kBackends),
                        .dtype = word_of(json["dtype"], kDTypes),
                        .date = json["date"].as_string(),
                        .version = json["megalith"].as_string(),
                        .threads = whole(json["threads"], 1),
                        .seconds = number(json["seconds"], {.end = 1e9, .above = true}),
                        .points = {}};
  const Json::Array& points = json["points"].as_array();
  if (points.size() > kMostPoints)
    fail(ErrorKind::kData, path, ": points has ", points.size(), " points, wanted at most ", kMostPoints,
         "; a fit to more would take minutes");
  profile.grid = whole(json["grid"], static_cast<int64_t>(points.size()));
  for (const Json& point : points) profile.points.push_back(point_of(point));
  check_points(profile.points, path);
  return profile;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (const size_t colon = line.find(':'); colon != line.npos)
        return std::string(trim(std::string_view(line).substr(colon + 1)));
  return "unknown";
}

}  // namespace megalith
