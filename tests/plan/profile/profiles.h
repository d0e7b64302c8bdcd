#pragma once

#include <functional>

#include "libcore/base/machine/proc.h"
#include "libcore/plan/profile/device_profile.h"
#include "libcore/plan/profile/profile_grid.h"

namespace megalith::test {

/// An invented processor. The time of an op is the sum of its parts, which is a different formula from the
/// planner's.
struct MadeDevice {
  double matrix_rate = 150e9, bandwidth = 24e9, half_depth = 90, attention = 0.4, backward = 0.7,
         start = 3e-6;

  double seconds(const ProfilePoint& p) const {
    const auto depth = static_cast<double>(p.depth);
    switch (p.kind) {
      case ProfiledKind::kProduct:
        return p.flops / matrix_rate * (1 + half_depth / depth) + 0.2 * p.bytes / bandwidth + start;
      case ProfiledKind::kAttention:
        return p.flops / (attention * matrix_rate) + start;
      case ProfiledKind::kAttentionGradient:
        return p.flops / (attention * backward * matrix_rate) + start;
      case ProfiledKind::kMemory:
        return p.bytes / bandwidth + start;
      case ProfiledKind::kStart:
        return start;
    }
    return 0;
  }
};

/// The grid's first points with the times of the invented device, each wrong by a few per cent.
inline DeviceProfile made_profile(const MadeDevice& made = {}, size_t count = 120, double element = 4) {
  DeviceProfile profile{.device = "this machine's processor",
                        .processor = processor_name(),
                        .backend = "cpu",
                        .dtype = "fp32",
                        .date = "2026-11-23 07:00:00",
                        .version = "0.1.0",
                        .threads = 2,
                        .seconds = 60,
                        .grid = static_cast<int64_t>(count),
                        .points = profile_grid(8)};
  profile.points.resize(count);
  for (size_t i = 0; i < count; ++i) {
    ProfilePoint& p = profile.points[i];
    const auto size = [](int64_t n) { return static_cast<double>(n); };
    p.bytes = p.kind == ProfiledKind::kProduct
                  ? element * (size(p.rows) * size(p.depth + p.columns) + size(p.depth) * size(p.columns))
                  : 2 * element * size(p.rows * p.columns + p.sequence * p.heads * p.head);
    p.seconds = made.seconds(p) * (1 + 0.03 * (static_cast<double>(i % 3) - 1));
    p.spread = 0.01;
    p.samples = 5;
  }
  return profile;
}

/// The profile of a GPU of the planner's list whose large products run at `flops` and whose memory-bound ops
/// run at `bandwidth`.
inline DeviceProfile made_gpu_profile(const std::string& device, double flops, double bandwidth) {
  DeviceProfile profile = made_profile({.matrix_rate = flops,
                                        .bandwidth = bandwidth,
                                        .half_depth = 100,
                                        .attention = 0.55,
                                        .backward = 0.8,
                                        .start = 2.5e-6},
                                       200, 2);
  profile.device = device;
  profile.backend = "cuda";
  profile.dtype = "bf16";
  return profile;
}

}  // namespace megalith::test
