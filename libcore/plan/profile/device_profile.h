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
  kAttentionGradient,  // its backward pass
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
  int64_t sequence = 0, heads = 0, head = 0;  // of attention, one sample; head: channels
  double flops = 0, bytes = 0;                // the op's cost (ops/op.h)
  double seconds = 0;                         // median
  double spread = 0;    // half the distance between the quartiles, relative to the median
  int64_t samples = 0;  // at least kLeastSamples
};
constexpr int64_t kLeastSamples = 3;

/// The valid values of ProfilePoint::op for the kind; for a product these are its forms: forward, and one for
/// each gradient.
std::span<const std::string_view> ops_of(ProfiledKind);

/// What a point's time depends on in the planner's model: its kind and sizes, but not the form of a product
/// or which memory-bound op it is; for a start the op. Points with equal keys give a fit the same
/// information.
using PointKey = std::tuple<ProfiledKind, std::string, std::vector<int64_t>>;
PointKey key_of(const ProfilePoint&);

/// The measurements of one device by `megalith-autoplan profile`.
struct DeviceProfile {
  std::string device;     // the planner's name (Accelerator::name)
  std::string processor;  // "AMD EPYC 9554"; the CPU, or the host of the GPU
  std::string backend;    // "cpu", "cuda"
  std::string dtype;      // "fp32", "bf16", "fp16"
  std::string date;       // "2026-11-23 07:30:00"
  std::string version;    // of the library that measured
  int64_t threads = 0;    // of the CPU's ops
  double seconds = 0;     // duration of measuring
  int64_t grid = 0;       // number of points planned; those not in `points` were cut off
  std::vector<ProfilePoint> points;
};

Json to_json(const DeviceProfile&);

/// Whether the text is a profile, of this or another version.
bool is_device_profile(std::string_view text);
/// Reads a profile. kData, with the file, the member and the expected value, when the text is not a profile
/// of this version, a word is not one that this version writes, a number is not an integer or outside the
/// range of a measurement, two points have one op and one size, or there are fewer than kLeastProducts
/// products or more than kMostPoints points.
DeviceProfile parse_device_profile(std::string_view text, const std::string& path);
constexpr int kLeastProducts = 4;
constexpr size_t kMostPoints = 2000;  // six times the whole grid

/// The processor's name in /proc/cpuinfo; "unknown" if there is none.
std::string processor_name();

}  // namespace megalith
