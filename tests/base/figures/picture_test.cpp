#include "libcore/base/figures/picture.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
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
  const std::string svg = chart_file(
      {"Loss", "nats"},
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
  const std::string svg = chart_file({"Loss & more", "nats a token"}, {{"loss", "#111111", &points}});
  EXPECT_EQ(texts(svg, "axis"), (std::vector<std::string>{"iteration", "nats a token"}));
  EXPECT_NE(svg.find("role=\"img\" aria-label=\"Loss &amp; more\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title>Loss &amp; more</title>"), std::string::npos);
}

TEST(Chart, WritesTheNumbersOfAnAxisAlike) {
  const auto ticks = [](double low, double high) {
    const ChartPoints points{{1, low}, {2, high}};
    return texts(chart_file({"t", "v"}, {{"s", "#111111", &points}}), "y");
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
  EXPECT_EQ(texts(chart_file({"t", "v"}, {{"s", "#111111", &points}}), "x"),
            (std::vector<std::string>{"1", "2", "3"}));
}

TEST(Chart, ThinsALongCurveAndKeepsItsEnd) {
  ChartPoints points;
  for (int64_t i = 1; i <= 100'000; ++i) points[i] = 1.0 / static_cast<double>(i);
  const std::string svg = chart_file({"t", "v"}, {{"loss", "#111111", &points}});
  EXPECT_LT(svg.size(), 40'000u);
  EXPECT_NE(svg.find("L744.0 268.0\""), std::string::npos);  // the bottom right corner of the plot
}

TEST(Chart, IsNotPressedFlatByDotsFarFromItsLine) {
  ChartPoints dots, line;
  for (int64_t i = 1; i <= 20; ++i) dots[i] = 20'000 + 100.0 * static_cast<double>(i), line[i] = 21'000;
  dots[1] = 130'000;
  const std::string svg =
      chart_file({"t", "v"}, {{"steps", "#111111", &dots, ChartMark::kFaintDots}, {"m", "#222222", &line}});
  EXPECT_EQ(texts(svg, "y").back(), "22,000");
  EXPECT_NE(svg.find("<circle cx=\"84.0\" cy=\"34.0\""), std::string::npos) << "at the upper edge";
  EXPECT_NE(svg.find("iteration 1: 130000"), std::string::npos);
  const std::string alone = chart_file({"t", "v"}, {{"steps", "#111111", &dots, ChartMark::kFaintDots}});
  EXPECT_EQ(texts(alone, "y").back(), "120,000") << "of all dots, where there is no line";
}

/// The texts that the pointer shows, in order.
std::vector<std::string> hover_texts(const std::string& svg) {
  const test::Pattern element("<rect class=\"hit\"[^>]*><title>([^<]*)</title>");
  std::vector<std::string> out;
  for (const test::Pattern::Match& at : element.all_in(svg)) out.push_back(at[1]);
  return out;
}
/// The part of the HTML that holds the picture of this class.
std::string picture(const std::string& html, const std::string& kind) {
  const size_t begin = html.find("<svg class=\"" + kind + "\"");
  return begin == std::string::npos ? "" : html.substr(begin, html.find("</svg>", begin) - begin);
}

TEST(ChartHtml, ShowsTheValuesOfAllCurvesUnderThePointer) {
  const ChartPoints raw{{1, 4.0}, {2, 3.0}}, valid{{2, 3.5}}, tokens{{1, 2000}, {2, 4000}};
  const std::string html =
      chart_html({.title = "Loss", .value = "nats", .second = "tokens", .below = &tokens},
                 {{"", "#111111", &raw, ChartMark::kLine, "training"}, {"valid < test", "#222222", &valid}});
  for (const char* const kind : {"wide", "small"})
    EXPECT_EQ(hover_texts(picture(html, kind)),
              (std::vector<std::string>{"iteration 1, 2k tokens\ntraining: 4.0000",
                                        "iteration 2, 4k tokens\ntraining: 3.0000\nvalid &lt; test: 3.5000"}))
        << kind;
  EXPECT_TRUE(hover_texts(chart_file({"Loss", "nats"}, {{"", "#111111", &raw}})).empty());
}

TEST(ChartHtml, HasFewPlacesForThePointerOnALongCurve) {
  ChartPoints points;
  for (int64_t i = 1; i <= 10'000; ++i) points[i] = static_cast<double>(i);
  const std::string html = chart_html({"t", "v"}, {{"loss", "#111111", &points}});
  const std::vector<std::string> wide = hover_texts(picture(html, "wide")),
                                 small = hover_texts(picture(html, "small"));
  EXPECT_LE(wide.size(), 240u);
  EXPECT_GE(wide.size(), 200u);
  EXPECT_LE(small.size(), 100u);
  EXPECT_EQ(wide.back(), "iteration 10000\nloss: 10000.0");
}

TEST(Chart, HasASecondRowOfNumbers) {
  ChartPoints loss, tokens;
  for (int64_t i = 1; i <= 100; ++i) loss[i] = 1, tokens[i] = 50'000.0 * static_cast<double>(i);
  const std::string svg = chart_file({.title = "t", .value = "v", .second = "tokens", .below = &tokens},
                                     {{"l", "#111111", &loss}});
  EXPECT_EQ(texts(svg, "axis"), (std::vector<std::string>{"iteration", "tokens", "v"}));
  EXPECT_EQ(texts(svg, "x"),
            (std::vector<std::string>{"20", "40", "60", "80", "100", "1M", "2M", "3M", "4M", "5M"}));
  const test::Pattern place("<text class=\"x\" x=\"([0-9.]+)\"[^>]*>(20|1M|60|3M)<");
  std::vector<std::string> at;
  for (const test::Pattern::Match& match : place.all_in(svg)) at.push_back(match[1]);
  ASSERT_EQ(at.size(), 4u);
  EXPECT_EQ(at[0], at[2]) << "20 iterations read a million tokens";
  EXPECT_EQ(at[1], at[3]) << "60 iterations read three";
}

TEST(Chart, ShowsItsKeysInAnotherUnit) {
  const ChartPoints points{{0, 1.0}, {90'000, 2.0}, {240'000, 3.0}};  // milliseconds
  const std::string html =
      chart_html({.title = "t", .value = "v", .key = "minutes", .unit = 60'000}, {{"l", "#111111", &points}});
  EXPECT_EQ(texts(picture(html, "wide"), "x"), (std::vector<std::string>{"0", "1", "2", "3", "4"}));
  EXPECT_EQ(hover_texts(picture(html, "wide"))[1], "minutes 1.5000\nl: 2.0000");
}

// The picture's edge would cut numbers and names that are too long for it.
TEST(Chart, CutsNoText) {
  ChartPoints points;
  for (int64_t i = 0; i <= 10'000; i += 100) points[i] = 1.0 / static_cast<double>(i + 1);
  std::vector<ChartSeries> series;
  series.push_back({std::string(200, 'n'), "#111111", &points});
  for (int i = 0; i < 12; ++i) series.push_back({concat("a run with a long name ", i), "#111111", &points});
  const std::string html = chart_html({"t", "v"}, series);
  for (const auto& [kind, width] : {std::pair{"wide", 760.0}, {"small", 380.0}}) {
    const std::string svg = picture(html, kind);
    const test::Pattern text("<text class=\"(x|legend)\" x=\"([0-9.-]+)\" y=\"([0-9.]+)\"[^>]*>([^<]*)<");
    std::set<std::string> rows;
    for (const test::Pattern::Match& match : text.all_in(svg)) {
      const double x = std::stod(match[2]), letters = 7.0 * static_cast<double>(match[4].size());
      const bool legend = match[1] == "legend";
      EXPECT_GE(x - letters / (legend ? 1 : 2), 0) << kind << ": " << match[4];
      EXPECT_LE(x + (legend ? 0 : letters / 2), width) << kind << ": " << match[4];
      if (legend) rows.insert(match[3]);
    }
    EXPECT_GE(rows.size(), 3u) << kind;
    EXPECT_EQ(svg.find("y=\"-"), std::string::npos);
  }
}

TEST(ShortCount, HasFewDigits) {
  for (const auto& [value, text] : {std::pair{0.0, "0"},
                                    {999.0, "999"},
                                    {1000.0, "1k"},
                                    {12'500.0, "12.5k"},
                                    {3'200'000.0, "3.2M"},
                                    {1'234'567.0, "1.23M"},
                                    {4e9, "4B"},
                                    {1.5e12, "1.5T"},
                                    {-2000.0, "-2k"}})
    EXPECT_EQ(short_count(value), text) << value;
}

}  // namespace
}  // namespace megalith
