#include "libcore/config/batch_schedule.h"

#include <array>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

TEST(BatchSchedule, EqualsMegatronsCalculator) {
  constexpr std::array<int64_t, 8> kConsumed = {0, 1, 7, 99, 100, 101, 1000, 123456789};
  std::ifstream golden(test::test_data("config/goldens/batch_schedule.txt"));
  int read = 0, refused = 0;
  for (std::string line; std::getline(golden, line);) {
    if (line.starts_with("#")) continue;
    const std::vector<std::string> parts = split(line, '|');
    const BatchSchedule schedule = parse_batch_schedule(parts[0], *parse_int(parts[1]));
    if (parts[2] == "error") {
      EXPECT_TRUE(!schedule.wrong.empty() || schedule.levels.empty()) << line;
      ++refused;
      continue;
    }
    EXPECT_EQ(schedule.wrong, "") << line;
    std::string levels, batches;
    for (const auto& [from, batch] : schedule.levels)
      levels += concat(levels.empty() ? "" : " ", from, ':', batch);
    for (const int64_t consumed : kConsumed)
      batches += concat(batches.empty() ? "" : " ", batch_at(schedule.levels, consumed));
    EXPECT_EQ(levels, parts[2]) << line;
    EXPECT_EQ(batches, parts[3]) << line;
    ++read;
  }
  EXPECT_EQ(read, 16);
  EXPECT_EQ(refused, 26);
}

TEST(BatchSchedule, SaysWhatIsWrong) {
  const auto wrong = [](const char* text) { return parse_batch_schedule(text, 0).wrong; };
  EXPECT_EQ(wrong("0:4 8"), "holds \"8\", wanted THRESHOLD:BATCH, such as 250B:1536");
  EXPECT_EQ(wrong("0:4 1e30T:8"), "holds \"1e30T:8\", wanted THRESHOLD:BATCH, such as 250B:1536");
  EXPECT_EQ(wrong("0:3B"), "holds \"0:3B\", wanted THRESHOLD:BATCH, such as 250B:1536");
  EXPECT_EQ(wrong("8:4"), "begins after 8 samples; give the batch from 0 on");
  EXPECT_EQ(wrong("0:4 9:5 9:6"),
            "has two batches, 5 and 6, for the steps after 9 samples; give one of them");
  EXPECT_EQ(wrong(" "), "");
}

/// Counts step by step what steps_in_levels() counts level by level.
CountedSteps counted_one_by_one(const std::vector<BatchLevel>& levels, int64_t consumed, int64_t max_steps,
                                int64_t samples) {
  CountedSteps counted;
  while (counted.steps < max_steps) {
    int64_t batch = 0;
    for (const BatchLevel& level : levels)
      if (consumed >= level.from) batch = level.batch;
    if (consumed + batch > samples) break;
    consumed += batch;
    counted.samples += batch;
    ++counted.steps;
  }
  return counted;
}

TEST(BatchSchedule, CountsStepsOfEachLevel) {
  for (const std::vector<BatchLevel>& levels : {std::vector<BatchLevel>{{0, 4}, {10, 8}, {50, 12}},
                                                {{0, 7}},
                                                {{0, 16}, {3, 4}, {5, 32}},
                                                {{0, 9}, {30, 2}, {31, 5}}})
    for (const int64_t consumed : {0, 3, 12, 49, 50, 51, 80})
      for (const int64_t steps : {0, 1, 5, 1000})
        for (const int64_t samples : {0, 11, 50, 51, 100, 1000}) {
          const CountedSteps whole = steps_in_levels(levels, consumed, steps, samples);
          const CountedSteps wanted = counted_one_by_one(levels, consumed, steps, samples);
          EXPECT_EQ(whole.steps, wanted.steps) << consumed << ' ' << steps << ' ' << samples;
          EXPECT_EQ(whole.samples, wanted.samples) << consumed << ' ' << steps << ' ' << samples;
        }
  const std::vector<BatchLevel> levels{{0, 4}, {100, 8}};
  EXPECT_EQ(steps_in_levels(levels, 0, 1 << 30, kNoLimit).samples, 100 + ((int64_t{1} << 30) - 25) * 8);
}

}  // namespace
}  // namespace megalith
