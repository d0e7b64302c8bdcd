#include "libcore/base/log.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/process.h"

namespace megalith {
namespace {

/// What is logged while it lives. Tests have no terminal, so that no progress line is drawn.
class Lines {
 public:
  Lines() : before_(set_log_sink([this](const std::string& line) { lines_.push_back(line); })) {}
  ~Lines() { set_log_sink(before_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  const std::vector<std::string>& all() const { return lines_; }

 private:
  std::vector<std::string> lines_;
  LogSink before_;
};

/// Calls `advance` until something was logged, for at most a minute. Returns the seconds that this took.
template <class Advance>
double until_logged(const Lines& lines, const Advance& advance) {
  const auto start = std::chrono::steady_clock::now();
  while (lines.all().empty() && seconds_since(start) < 60) advance();
  return seconds_since(start);
}

TEST(Progress, SaysOnceWhatLongWorkDoesWhereNoLineIsDrawn) {
  const Lines lines;
  Progress progress("checking", 1000, "files");
  EXPECT_GE(until_logged(lines, [&] { progress.advance_to(400, "of a folder"); }), 2.0);
  for (int i = 401; i <= 1000; ++i) progress.advance_to(i);
  ASSERT_EQ(lines.all().size(), 1U);
  const std::string& line = lines.all().front();
  EXPECT_EQ(line.find("checking  40%  400/1,000 files  "), 0U) << line;
  EXPECT_NE(line.find(" files/s  ETA "), std::string::npos) << line;
  EXPECT_NE(line.find("  of a folder"), std::string::npos) << line;
}

TEST(Progress, IsSilentAboutShortWorkAndAtItsEnd) {
  const Lines lines;
  Progress progress("checking", 10, "files");
  for (int i = 0; i <= 9; ++i) progress.advance_to(i);
  const auto start = std::chrono::steady_clock::now();
  while (seconds_since(start) < 2.1) progress.advance_to(10);
  EXPECT_TRUE(lines.all().empty()) << lines.all().front();
}

TEST(Progress, SaysNothingInAMutedThread) {
  const Lines lines;
  const Muted muted;
  Progress progress("checking", 10, "files");
  const auto start = std::chrono::steady_clock::now();
  while (seconds_since(start) < 2.1) progress.advance_to(5);
  EXPECT_TRUE(lines.all().empty());
}

}  // namespace
}  // namespace megalith
