#include "libcore/plan/profile/device_probe.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "libcore/base/process.h"
#include "libcore/plan/profile/profile_grid.h"

namespace megalith {
namespace {

/// The smallest point of each op.
std::vector<ProfilePoint> one_of_each() {
  std::vector<ProfilePoint> points;
  std::set<std::string> ops;
  for (const ProfilePoint& point : profile_grid(2))  // the grid begins with the smallest point of each kind
    if (point.kind != ProfiledKind::kStart && ops.insert(point.op).second) points.push_back(point);
  return points;
}

TEST(DeviceProbe, RunsEveryOpInEachDtype) {
  const std::vector<ProfilePoint> points = one_of_each();
  ASSERT_EQ(points.size(), 9u);  // three forms of products, attention and its gradient, four memory-bound ops
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    const auto cpu = make_cpu_backend();
    DeviceProbe probe(*cpu, dtype, size_t{1} << 26);
    for (ProfilePoint point : points) {
      if (point.kind == ProfiledKind::kProduct) point.rows = point.columns = point.depth = 64;
      if (point.kind == ProfiledKind::kMemory) point.rows = 8;
      if (point.sequence > 0) point.sequence = 64;
      ASSERT_TRUE(probe.holds(point)) << point.op;
      EXPECT_GT(probe.seconds_of(point, 2), 0) << point.op << " in " << name_of(dtype);
    }
  }
}

TEST(DeviceProbe, TellsWhatItsOpsCost) {
  const auto cpu = make_cpu_backend();
  DeviceProbe probe(*cpu, DType::kBf16, size_t{1} << 24);
  ProfilePoint product{.kind = ProfiledKind::kProduct, .op = "weight-gradient"};
  product.rows = 32;
  product.columns = 48;
  product.depth = 64;
  EXPECT_EQ(probe.priced(product).flops, 2.0 * 32 * 48 * 64);
  EXPECT_GE(probe.priced(product).bytes, 2.0 * (32 * 64 + 64 * 48) + 4.0 * 32 * 48);
  ProfilePoint attention{.kind = ProfiledKind::kAttention, .op = "attention"};
  attention.sequence = 16;
  attention.heads = 2;
  attention.head = 32;
  constexpr int kPairs = 16 * 17 / 2;  // pairs of tokens that the mask leaves
  EXPECT_EQ(probe.priced(attention).flops, 4.0 * kPairs * 2 * 32);
  attention.kind = ProfiledKind::kAttentionGradient;
  EXPECT_EQ(probe.priced(attention).flops, 10.0 * kPairs * 2 * 32);
}

// If pricing ran the ops, pricing each a hundred times would take a hundred times as long as running each
// once.
TEST(DeviceProbe, PricesOpsWithoutRunningThem) {
  const auto cpu = make_cpu_backend();
  DeviceProbe probe(*cpu, DType::kF32, size_t{1} << 25);
  std::vector<ProfilePoint> points = one_of_each();
  double once = 0;
  for (ProfilePoint& point : points) {
    if (point.kind == ProfiledKind::kProduct) point.rows = point.columns = point.depth = 1024;
    if (point.kind == ProfiledKind::kMemory) point.rows = 4096;
    if (point.sequence > 0) point.sequence = 512;
    ASSERT_TRUE(probe.holds(point)) << point.op;
    once += probe.seconds_of(point, 1);
  }
  const auto start = std::chrono::steady_clock::now();
  for (const ProfilePoint& point : points)
    for (int i = 0; i < 100; ++i) probe.priced(point);
  EXPECT_LT(seconds_since(start), 20 * once);
}

TEST(DeviceProbe, HoldsNoMoreThanItsMemory) {
  const auto cpu = make_cpu_backend();
  const DeviceProbe probe(*cpu, DType::kF32, size_t{1} << 22);
  ProfilePoint product{.kind = ProfiledKind::kProduct, .op = "forward", .rows = 64, .columns = 64};
  product.depth = 64;
  EXPECT_TRUE(probe.holds(product));
  product.depth = 1 << 14;  // 4 MiB per operand
  EXPECT_FALSE(probe.holds(product));
}

}  // namespace
}  // namespace megalith
