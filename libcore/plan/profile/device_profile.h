#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "libcore/json/json.h"
#include "libcore/options/fields.h"

namespace megalith {

/// What a point of a profile measures.
enum class ProfiledKind : uint8_t {
  kProduct,            // a matrix product
  kAttention,          // causal attention in flash form
  kAttentionGradient,  // attention's backward pass
  kMemory,             // an op that reads and writes each element once or twice
  kStart,              // an op with almost no work
};
inline std::vector<EnumName<ProfiledKind>> enum_names(ProfiledKind) {
  return {{"product", ProfiledKind::kProduct},
          {"attention", ProfiledKind::kAttention},
          {"attention-gradient", ProfiledKind::kAttentionGradient},
          {"memory", ProfiledKind::kMemory},
          {"start", ProfiledKind::kStart}};
}

/// One op on one size, measured several times.
struct ProfilePoint {
  ProfiledKind kind = ProfiledKind::kStart;
  std::string op;                             // one of ops_of(kind)
  int64_t rows = 0, columns = 0, depth = 0;   // a product is [rows, depth] by [depth, columns]
  int64_t sequence = 0, heads = 0, head = 0;  // sizes of attention over one sample; head: channels per head
  double flops = 0, bytes = 0;                // the op's cost (ops/op.h)
  double seconds = 0;                         // median of the samples
  double spread = 0;    // half the distance between the quartiles, relative to the median
  int64_t samples = 0;  // at least kLeastSamples
};
constexpr int64_t kLeastSamples = 3;

/// The valid values of ProfilePoint::op for the kind. For a product they are its forms: forward, and one for
/// each gradient.
std::span<const std::string_view> ops_of(ProfiledKind);

/// What determines a point's time in the planner's model: its kind and its sizes, and for a start also the
/// op. The form of a product, and which memory-bound op it is, do not matter. Points with equal keys give a
/// fit the same information.
using PointKey = std::tuple<ProfiledKind, std::string, std::vector<int64_t>>;
PointKey key_of(const ProfilePoint&);

/// The measurements of one device by `megalith-autoplan profile`.
struct DeviceProfile {
  std::string device;     // the planner's name (Accelerator::name)
  std::string processor;  // the CPU, or the host of the GPU: "AMD EPYC 9554"
  std::string backend;    // "cpu", "cuda"
  std::string dtype;      // "fp32", "bf16", "fp16"
  std::string date;       // "2026-11-23 07:30:00"
  std::string version;    // version of the library that measured
  int64_t threads = 0;    // number of threads of the CPU's ops
  double seconds = 0;     // how long the measurement took
  int64_t grid = 0;       // number of points planned; those missing in `points` were not measured
  std::vector<ProfilePoint> points;
};

Json to_json(const DeviceProfile&);

/// Whether the text is a profile, of this or another version.
bool is_device_profile(std::string_view text);
/// Reads a profile. kData, with the file, the member and the expected value: when the text is not a profile
/// of this version, when it has a word that this version does not write, when a number is not an integer or
/// is outside the range of a measurement, when two points have the same op and size, or when there are fewer
/// than kLeastProducts products or more than kMostPoints points.
DeviceProfile parse_device_profile(std::string_view text, const std::string& path);
constexpr int kLeastProducts = 4;
constexpr size_t kMostPoints = 2000;  // six times the whole grid

}  // namespace megalith
