#include "libcore/plan/profile/profile_grid.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(SpreadOrder, BeginsWithEvenDistances) {
  EXPECT_EQ(spread_order(8), (std::vector<size_t>{0, 4, 2, 6, 1, 5, 3, 7}));
  EXPECT_EQ(spread_order(5), (std::vector<size_t>{0, 4, 2, 1, 3}));
  EXPECT_EQ(spread_order(1), std::vector<size_t>{0});
  EXPECT_TRUE(spread_order(0).empty());
}

std::set<ProfiledKind> kinds_of(const std::vector<ProfilePoint>& points) {
  std::set<ProfiledKind> kinds;
  for (const ProfilePoint& point : points) kinds.insert(point.kind);
  return kinds;
}

TEST(ProfileGrid, BeginsWithACoarserGrid) {
  const std::vector<ProfilePoint> grid = profile_grid(8);
  const std::vector<ProfilePoint> begin(grid.begin(), grid.begin() + 40);
  EXPECT_EQ(kinds_of({grid.begin(), grid.begin() + 5}).size(), 5u);
  const auto range = [](const std::vector<ProfilePoint>& points) {
    double least = 1e300, most = 0;
    std::set<std::string> forms;
    for (const ProfilePoint& point : points)
      if (point.kind == ProfiledKind::kProduct) {
        least = std::min(least, point.flops);
        most = std::max(most, point.flops);
        forms.insert(point.op);
      }
    return std::tuple{std::log2(least), std::log2(most), forms.size()};
  };
  const auto [least, most, forms] = range(grid);
  EXPECT_EQ(forms, 3u);
  EXPECT_EQ(least, 22);               // 2 * 128^3
  EXPECT_EQ(most, 1 + 13 + 13 + 15);  // 2 * 8192 * 8192 * 32768
  const auto [first, last, some] = range(begin);
  EXPECT_EQ(first, least);
  EXPECT_GT(last, most - 0.15 * (most - least));
  EXPECT_EQ(some, 3u);
}

/// A device on which a call takes flops / 1e9 seconds (or 1 us), and every fourth call `disturbance` times as
/// long. `now` is its clock.
struct Device {
  double disturbance = 1;
  double now = 0;
  int64_t calls = 0;
  double seconds(const ProfilePoint& point) const { return std::max(point.flops / 1e9, 1e-6); }
  Probing probing() {
    return {.seconds_of =
                [this](const ProfilePoint& point, int64_t times) {
                  const double disturbed = ++calls % 4 == 0 ? disturbance : 1;
                  const double took = disturbed * seconds(point) * static_cast<double>(times);
                  now += took;
                  return took;
                },
            .clock = [this] { return now; },
            .progress = [](double, size_t) {}};
  }
};

std::vector<ProfilePoint> products(size_t count, double flops) {
  std::vector<ProfilePoint> grid(count);
  for (size_t i = 0; i < count; ++i) {
    grid[i].kind = ProfiledKind::kProduct;
    grid[i].flops = flops * static_cast<double>(i + 1);
    grid[i].rows = static_cast<int64_t>(i);
  }
  return grid;
}

TEST(MeasureGrid, FindsTheMedianOfDisturbedSamplesAndEndsWhenItIsSteady) {
  Device device{.disturbance = 3};
  const std::vector<ProfilePoint> grid = products(7, 1e5);
  const std::vector<ProfilePoint> points = measure_grid(grid, 60, device.probing());
  ASSERT_EQ(points.size(), grid.size());
  for (const ProfilePoint& point : points) {
    EXPECT_NEAR(point.seconds, device.seconds(point), 1e-12) << point.rows;
    EXPECT_GE(point.samples, 5);
  }
  EXPECT_LT(device.now, 30);
}

TEST(MeasureGrid, EndsEarlyWithACoarserGridOfWholePoints) {
  Device device;
  std::vector<ProfilePoint> grid = products(200, 1e6);  // calls of 1 to 200 ms: four of each point take 80 s
  const std::vector<ProfilePoint> points = measure_grid(grid, 41, device.probing());
  EXPECT_LT(device.now, 41 + 3 * 0.2);
  EXPECT_GT(points.size(), 20u);
  EXPECT_LT(points.size(), grid.size());
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_GE(points[i].samples, kLeastSamples);
    EXPECT_EQ(points[i].rows, static_cast<int64_t>(i)) << "the beginning of the order";
  }
}

// Every call takes 50 ms, as when other work occupies the processor: two seconds alone would be enough for
// only 13 points.
TEST(MeasureGrid, OfABusyMachineIsCoarseAndNotEmpty) {
  Device device;
  const Probing usual = device.probing();
  Probing probing = usual;
  probing.seconds_of = [&](const ProfilePoint& point, int64_t times) {
    device.now += 0.05;
    return usual.seconds_of(point, times);
  };
  EXPECT_EQ(measure_grid(products(100, 1e3), 2, probing).size(), kLeastPoints);
  EXPECT_LT(device.now, 5);
}

TEST(MeasureGrid, LeavesOutWhatIsTooLargeForTheTime) {
  Device device;
  std::vector<ProfilePoint> grid = products(3, 1e6);
  grid[1].flops = 1e12;  // one call takes 1000 s
  const std::vector<ProfilePoint> points = measure_grid(grid, 5, device.probing());
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].rows, 2);
  EXPECT_LT(device.now, 5.1);
}

// The very first call is a hundred times too slow. Judged by its rate, no other point could be measured in
// time.
TEST(MeasureGrid, DoesNotBelieveOneSlowStart) {
  Device device;
  Probing probing = device.probing();
  int64_t calls = 0;
  const auto usual = probing.seconds_of;
  probing.seconds_of = [&](const ProfilePoint& point, int64_t times) {
    return usual(point, times) * (++calls <= 2 ? 100 : 1);
  };
  std::vector<ProfilePoint> grid = products(50, 5e4);
  std::reverse(grid.begin() + 1, grid.end());  // the largest comes first: 2.5 ms
  EXPECT_EQ(measure_grid(grid, 5, probing).size(), grid.size());
}

}  // namespace
}  // namespace megalith
