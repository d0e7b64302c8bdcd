#include "libcore/base/figures/chart.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(Smoothed, MeansThePointsAround) {
  ChartPoints points;
  for (int64_t i = 1; i <= 12; ++i) points[i] = i % 2 == 0 ? 1.0 : 0.0;
  const ChartPoints smooth = smoothed(points);
  EXPECT_EQ(smooth.at(1), 0.0);
  EXPECT_DOUBLE_EQ(smooth.at(2), 1.0 / 3);   // mean of points 1 to 3
  EXPECT_DOUBLE_EQ(smooth.at(6), 3.0 / 5);   // mean of points 4 to 8
  EXPECT_DOUBLE_EQ(smooth.at(11), 2.0 / 4);  // mean of points 9 to 12
  EXPECT_DOUBLE_EQ(smooth.at(12), 2.0 / 3);  // mean of points 10 to 12: no single value moves the end
  EXPECT_TRUE(smoothed({{1, 2.0}, {2, 3.0}}).empty());
}

TEST(RunningMedians, AreNotMovedByOneFarOff) {
  ChartPoints points;
  for (int64_t i = 1; i <= 20; ++i) points[i] = 100;
  points[10] = 1;
  for (const auto& [i, value] : running_medians(points)) EXPECT_EQ(value, 100) << i;
}

TEST(RunningMedians, AreNotMovedByTheFirstOrTheLast) {
  ChartPoints points;
  for (int64_t i = 1; i <= 20; ++i) points[i] = 100;
  points[1] = 700;
  points[20] = 1;
  for (const auto& [i, value] : running_medians(points)) EXPECT_EQ(value, 100) << i;
}

TEST(LastLoggedMean, IsThatOfTheLogsLastLine) {
  ChartPoints points;
  for (int64_t i = 1; i <= 12; ++i) points[i] = static_cast<double>(i);
  EXPECT_EQ(last_logged_mean(points, 1), 12);
  EXPECT_EQ(last_logged_mean(points, 5), 8);  // mean of iterations 6 to 10
  EXPECT_EQ(last_logged_mean(points, 5, {.start = 8}),
            9.5);                                                       // the run began after iteration 8
  EXPECT_EQ(last_logged_mean(points, 5, {.end = 8}), 3);                // mean of iterations 1 to 5
  EXPECT_EQ(last_logged_mean(points, 100), std::nullopt);               // the log has no line yet
  EXPECT_EQ(last_logged_mean(points, 5, {.start = 10}), std::nullopt);  // no line since the run was resumed
  EXPECT_EQ(last_logged_mean(ChartPoints(), 5), std::nullopt);
}

}  // namespace
}  // namespace megalith
