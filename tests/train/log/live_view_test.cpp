#include "libcore/train/log/live_view.h"

#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

RunHistory run() {
  RunReader reader("run.jsonl");
  std::string lines = R"({"type": "start", "time": 1000, "iterations": 40, "args": {}})"
                      "\n";
  for (int i = 1; i <= 10; ++i)
    lines +=
        concat(R"({"type": "train", "time": )", 1000 + 2 * i, R"(, "iteration": )", i, R"(, "loss": )",
               11 - i, R"(, "lr": 0.001, "grad_norm": 1.5, "tokens_per_s": 512, "memory_bytes": 1048576, )",
               R"("tokens": )", 1024 * i, "}\n");
  lines += R"({"type": "valid", "time": 1020, "iteration": 10, "loss": 1.25})"
           "\n"
           R"({"type": "save", "time": 1020, "iteration": 10, "path": "out/iter_0000010"})"
           "\n";
  reader.take(lines);
  return reader.runs().back();
}

TEST(LiveView, ShowsHowFarTheRunIs) {
  EXPECT_EQ(live_view("out", run(), 1021, 80),
            "out: running, 1 min 00 s left\n"
            "step          10 of 40\n"
            "[===============                                             ] 25 %\n"
            "loss          6.0000 (median of the last steps)\n"
            "validation    1.2500\n"
            "learning rate 1.000E-03\n"
            "grad norm     1.5000\n"
            "tokens/s      512\n"
            "tokens        10.2k\n"
            "memory        1.00 MiB\n"
            "time          20.0 s\n"
            "checkpoint    iteration 10, out/iter_0000010\n"
            "\n"
            "loss, steps 1 to 10\n"
            "██▇▆▅▄▃▂▁▁\n");
}

TEST(LiveView, SaysWhenARunHasEndedOrIsSilent) {
  RunHistory one = run();
  EXPECT_EQ(split(live_view("out", one, 1200, 80), '\n')[0], "out: no line for 3 min 00 s");
  one.end_reason = "done";
  EXPECT_EQ(split(live_view("out", one, 1200, 80), '\n')[0], "out: ended: done");
}

TEST(LiveView, FitsTheTerminalAndEscapesNames) {
  const std::string view = live_view("\x1b[2J" + std::string(100, 'n'), run(), 1021, 30);
  EXPECT_EQ(view.find('\x1b'), std::string::npos);
  for (const std::string& line : split(view, '\n'))
    if (line.find("█") == std::string::npos) {
      EXPECT_LE(line.size(), 30u) << line;
    }
}

TEST(LiveView, ShowsARunThatHasNotBegun) {
  RunHistory none;
  none.starts.emplace_back();
  EXPECT_EQ(split(live_view("new", none, 10, 80), '\n')[0], "new: running");
}

TEST(BlockCurve, HasTheMeansOfManyPointsInFewColumns) {
  ChartPoints points;
  for (int64_t i = 0; i < 800; ++i) points[i] = static_cast<double>(i);
  EXPECT_EQ(block_curve(points, 8), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(block_curve({{1, 2.0}, {2, 2.0}}, 8), "▁▁") << "equal values";
  EXPECT_EQ(block_curve({}, 8), "");
  EXPECT_EQ(block_curve(points, 0), "");
}

}  // namespace
}  // namespace megalith
