#include "libcore/plan/profile/device_profile.h"

#include <algorithm>
#include <fstream>
#include <span>

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

/// A number that is at least, or (with `above`) greater than, 0.
double amount(const Json& json, const char* name, bool above, const std::string& where) {
  const double value = json[name].as_double();
  if (!(above ? value > 0 : value >= 0))
    fail(ErrorKind::kData, where, ".", name, " is ", value, ", wanted a number ",
         above ? "above 0" : "from 0", "; measure the device again");
  return value;
}

ProfiledKind kind_of(const std::string& word, const std::string& where) {
  for (const auto& [name, kind] : enum_names(ProfiledKind{}))
    if (word == name) return kind;
  fail(ErrorKind::kData, where, ".kind is ", quote(word),
       ", which this version does not know; measure the device with it");
}

ProfilePoint point_of(const Json& json, const std::string& where) {
  ProfilePoint point;
  point.kind = kind_of(json["kind"].as_string(), where);
  point.op = json["op"].as_string();
  for (const Size& size : sizes_of(point.kind))
    point.*size.member = static_cast<int64_t>(amount(json, size.name, true, where));
  const bool works = point.kind != ProfiledKind::kStart;
  point.flops = amount(json, "flops", works && point.kind != ProfiledKind::kMemory, where);
  point.bytes = amount(json, "bytes", works, where);
  point.seconds = amount(json, "seconds", true, where);
  point.spread = amount(json, "spread", false, where);
  point.samples = static_cast<int64_t>(amount(json, "samples", true, where));
  return point;
}

}  // namespace

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
  const Json json = Json::parse(text, path);
  const JsonNames names(json, path);
  if (const int64_t version = json["version"].as_int(); version != kVersion)
    fail(ErrorKind::kData, path, ": a profile of version ", version, ", wanted ", kVersion,
         "; measure the device with this megalith-autoplan");
  DeviceProfile profile{.device = json["device"].as_string(),
                        .processor = json["processor"].as_string(),
                        .backend = json["backend"].as_string(),
                        .dtype = json["dtype"].as_string(),
                        .date = json["date"].as_string(),
                        .version = json["megalith"].as_string(),
                        .threads = json["threads"].as_int(),
                        .seconds = json["seconds"].as_double(),
                        .grid = json["grid"].as_int(),
                        .points = {}};
  for (const Json& point : json["points"].as_array())
    profile.points.push_back(point_of(point, concat(path, ": points[", profile.points.size(), "]")));
  const auto products = std::count_if(profile.points.begin(), profile.points.end(),
                                      [](const auto& point) { return point.kind == ProfiledKind::kProduct; });
  if (products < kLeastProducts)
    fail(ErrorKind::kData, path, ": points has ", products, " matrix products, wanted at least ",
         kLeastProducts, "; measure for longer (--seconds)");
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
