#include "libcore/base/chart.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Chart, DrawsACurveOfEachSeriesThatHasPoints) {
  const ChartPoints train{{1, 4.0}, {2, 3.0}, {3, 2.5}}, valid{{2, 3.5}}, none;
  const std::string svg =
      chart_svg({{"training", "#111111", &train, false}, {"validation", "#222222", &valid, true}});
  EXPECT_EQ(count(svg, "<path "), 2u);
  EXPECT_EQ(count(svg, "<circle "), 1u);  // of the series with dots
  EXPECT_NE(svg.find(">training</text>"), std::string::npos);
  EXPECT_NE(svg.find("iteration 2: 3.5"), std::string::npos);
  const std::string alone =
      chart_file({{"training", "#111111", &train, false}, {"validation", "#222222", &none, true}});
  EXPECT_EQ(count(alone, "<path "), 1u);
  EXPECT_EQ(alone.find("validation"), std::string::npos);
  EXPECT_NE(alone.find("xmlns=\"http://www.w3.org/2000/svg\""), std::string::npos);
}

TEST(Chart, ThinsALongCurveAndKeepsItsEnd) {
  ChartPoints points;
  for (int64_t i = 1; i <= 100'000; ++i) points[i] = 1.0 / static_cast<double>(i);
  const std::string svg = chart_svg({{"loss", "#111111", &points, false}});
  EXPECT_LT(svg.size(), 40'000u);
  EXPECT_NE(svg.find("L744.0 266.0\""), std::string::npos);  // right and low end of the picture
}

}  // namespace
}  // namespace megalith
