#include "libcore/base/figures/chart.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/support/once/pattern.h"

namespace megalith {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// The texts of the SVG's text elements whose class is `kind`, in order.
std::vector<std::string> texts(const std::string& svg, const std::string& kind) {
  const test::Pattern element("<text class=\"" + kind + "\"[^>]*>([^<]*)</text>");
  std::vector<std::string> out;
  for (const test::Pattern::Match& at : element.all_in(svg)) out.push_back(at[1]);
  return out;
}

TEST(Chart, DrawsACurveOfEachSeriesThatHasPoints) {
  const ChartPoints train{{1, 4.0}, {2, 3.0}, {3, 2.5}}, valid{{2, 3.5}}, none;
  const std::string svg =
      chart_svg({"Loss", "nats"},
                {{"training", "#111111", &train}, {"validation", "#222222", &valid, ChartMark::kDottedLine}});
  EXPECT_EQ(count(svg, "<path "), 2u);
  EXPECT_EQ(count(svg, "<circle "), 1u);  // the one point of the series with dots
  EXPECT_NE(svg.find(">training</text>"), std::string::npos);
  EXPECT_NE(svg.find("iteration 2: 3.5"), std::string::npos);
  const std::string alone =
      chart_file({"Loss", "nats"},
                 {{"training", "#111111", &train}, {"validation", "#222222", &none, ChartMark::kDottedLine}});
  EXPECT_EQ(count(alone, "<path "), 1u);
  EXPECT_EQ(alone.find("validation"), std::string::npos);
  EXPECT_NE(alone.find("xmlns=\"http://www.w3.org/2000/svg\""), std::string::npos);
}

TEST(Chart, NamesItsAxesAndSaysWhatItShows) {
  const ChartPoints points{{1, 4.0}, {2, 3.0}};
  const std::string svg = chart_svg({"Loss & more", "nats a token"}, {{"loss", "#111111", &points}});
  EXPECT_EQ(texts(svg, "axis"), (std::vector<std::string>{"iteration", "nats a token"}));
  EXPECT_NE(svg.find("role=\"img\" aria-label=\"Loss &amp; more\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title>Loss &amp; more</title>"), std::string::npos);
}

TEST(Chart, WritesTheNumbersOfAnAxisAlike) {
  const auto ticks = [](double low, double high) {
    const ChartPoints points{{1, low}, {2, high}};
    return texts(chart_svg({"t", "v"}, {{"s", "#111111", &points}}), "y");
  };
  EXPECT_EQ(ticks(0, 0.001),
            (std::vector<std::string>{"0.0000", "0.0002", "0.0004", "0.0006", "0.0008", "0.0010"}));
  EXPECT_EQ(ticks(2.5, 10.1), (std::vector<std::string>{"4", "6", "8", "10"}));
  EXPECT_EQ(ticks(0, 12000),
            (std::vector<std::string>{"0", "2,000", "4,000", "6,000", "8,000", "10,000", "12,000"}));
  for (const std::string& tick : ticks(0, 3e-5))
    EXPECT_EQ(tick.size(), std::string("5.0E-06").size()) << tick;
}

TEST(Chart, HasWholeIterationsOnceEach) {
  const ChartPoints points{{1, 1.0}, {3, 2.0}};
  EXPECT_EQ(texts(chart_svg({"t", "v"}, {{"s", "#111111", &points}}), "x"),
            (std::vector<std::string>{"1", "2", "3"}));
}

TEST(Chart, ThinsALongCurveAndKeepsItsEnd) {
  ChartPoints points;
  for (int64_t i = 1; i <= 100'000; ++i) points[i] = 1.0 / static_cast<double>(i);
  const std::string svg = chart_svg({"t", "v"}, {{"loss", "#111111", &points}});
  EXPECT_LT(svg.size(), 40'000u);
  EXPECT_NE(svg.find("L744.0 268.0\""), std::string::npos);  // the bottom right corner of the plot
}

TEST(Smoothed, MeansThePointsAround) {
  ChartPoints points;
  for (int64_t i = 1; i <= 12; ++i) points[i] = i % 2 == 0 ? 1.0 : 0.0;
  const ChartPoints smooth = smoothed(points);
  EXPECT_EQ(smooth.at(1), 0.0);
  EXPECT_DOUBLE_EQ(smooth.at(2), 1.0 / 3);  // mean of points 1 to 3
  EXPECT_DOUBLE_EQ(smooth.at(6), 3.0 / 5);  // mean of points 4 to 8
  EXPECT_EQ(smooth.at(12), 1.0);
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

TEST(Chart, IsNotPressedFlatByDotsFarFromItsLine) {
  ChartPoints dots, line;
  for (int64_t i = 1; i <= 20; ++i) dots[i] = 20'000 + 100.0 * static_cast<double>(i), line[i] = 21'000;
  dots[1] = 130'000;
  const std::string svg =
      chart_svg({"t", "v"}, {{"steps", "#111111", &dots, ChartMark::kFaintDots}, {"m", "#222222", &line}});
  EXPECT_EQ(texts(svg, "y").back(), "22,000");
  EXPECT_NE(svg.find("<circle cx=\"84.0\" cy=\"34.0\""), std::string::npos) << "at the upper edge";
  EXPECT_NE(svg.find("iteration 1: 130000"), std::string::npos);
  const std::string alone = chart_svg({"t", "v"}, {{"steps", "#111111", &dots, ChartMark::kFaintDots}});
  EXPECT_EQ(texts(alone, "y").back(), "120,000") << "of all dots, where there is no line";
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
