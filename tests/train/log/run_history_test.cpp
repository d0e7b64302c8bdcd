#include "libcore/train/log/run_history.h"

#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

std::string start(double time, int iteration, const std::string& args = "{}") {
  return concat(R"({"type": "start", "time": )", time, R"(, "iteration": )", iteration, R"(, "args": )", args,
                "}\n");
}
std::string step(double time, int iteration, double loss) {
  return concat(R"({"type": "train", "time": )", time, R"(, "iteration": )", iteration, R"(, "loss": )", loss,
                R"(, "tokens": )", 100 * iteration, "}\n");
}

std::vector<RunHistory> runs_of(const std::string& lines) {
  RunReader reader("run.jsonl");
  reader.take(lines);
  return reader.runs();
}

TEST(RunReader, CountsTheTimeOfARunWithoutItsPauses) {
  const std::vector<RunHistory> runs = runs_of(start(100, 0) + step(110, 1, 5) + step(120, 2, 4) +
                                               step(130, 3, 3) + start(1000, 2) + step(1005, 3, 3.5));
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].seconds, (ChartPoints{{1, 10}, {2, 20}, {3, 25}}));
  EXPECT_EQ(runs[0].loss, (ChartPoints{{1, 5}, {2, 4}, {3, 3.5}}));
  EXPECT_EQ(runs[0].tokens.at(3), 300);
  EXPECT_EQ(seconds_of(runs[0]), 25);
  EXPECT_EQ(runs[0].starts.size(), 2u);
}

TEST(RunReader, TakesTheMeanOfSeveralValidationSets) {
  const auto valid = [](int iteration, const char* set, double loss) {
    return concat(R"({"type": "valid", "iteration": )", iteration, R"(, "set": ")", set, R"(", "loss": )",
                  loss, R"(, "ppl": 1})", "\n");
  };
  const std::string before = start(100, 0) + step(110, 1, 5) + valid(1, "wiki", 4) + valid(1, "code", 2);
  const std::vector<RunHistory> runs = runs_of(before + step(120, 2, 4) + valid(2, "wiki", 7));
  EXPECT_EQ(runs[0].valid_loss, (ChartPoints{{1, 3}, {2, 7}}));
  EXPECT_EQ(runs[0].valid_sets.at(1).at("code"), 2);
  const std::vector<RunHistory> resumed =
      runs_of(before + step(120, 2, 4) + valid(2, "wiki", 7) + start(200, 1) + step(210, 2, 4) +
              valid(2, "wiki", 5) + valid(2, "code", 1));
  EXPECT_EQ(resumed[0].valid_loss, (ChartPoints{{1, 3}, {2, 3}}));
}

TEST(RunReader, TellsRunsInAFileApart) {
  const std::vector<RunHistory> runs =
      runs_of(start(100, 0) + step(110, 1, 5) + start(200, 0) + start(300, 0) + step(310, 1, 7));
  ASSERT_EQ(runs.size(), 2u) << "a process without a step is no run of its own";
  EXPECT_EQ(runs[0].loss.at(1), 5);
  EXPECT_EQ(runs[1].loss.at(1), 7);
  EXPECT_EQ(runs[1].starts.front().time, 300);
}

TEST(RunReader, TakesAFileInParts) {
  RunReader reader("run.jsonl");
  reader.take(start(100, 0));
  reader.take("");
  reader.take(step(110, 1, 5));
  EXPECT_EQ(reader.runs().back().iteration(), 1);
  try {
    reader.take(step(120, 2, 5) + "no figures\n");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("run.jsonl:4"), 0u) << error.what();
  }
}

TEST(DifferingOptions, HasARowForEach) {
  std::vector<RunHistory> runs =
      runs_of(start(1, 0, R"({"lr": 0.1, "seed": 1, "name": "a", "old": true})") + step(2, 1, 5) +
              start(3, 0, R"({"lr": 0.2, "seed": 1, "name": "a"})") + step(4, 1, 5));
  const std::vector<OptionRow> rows = differing_options(runs);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "lr");
  EXPECT_EQ(rows[0].values, (std::vector<std::string>{"0.1", "0.2"}));
  EXPECT_EQ(rows[1].name, "old");
  EXPECT_EQ(rows[1].values, (std::vector<std::string>{"true", ""}));
}

TEST(NameOfRun, IsItsFolderOrItsFile) {
  const auto name = [](const std::string& args) {
    return name_of_run(runs_of(start(1, 0, args)).back(), "runs/loss.html");
  };
  EXPECT_EQ(name("{}"), "loss");
  EXPECT_EQ(name(R"({"save": ""})"), "loss");
  EXPECT_EQ(name(R"({"save": "out/first"})"), "first");
  EXPECT_EQ(name(R"({"save": "out/first/"})"), "first");
}

TEST(DataOf, NamesWhatTheRunReads) {
  const auto data = [](const std::string& args) { return data_of(runs_of(start(1, 0, args)).back()); };
  EXPECT_EQ(data(R"({"data_path": ["0.3", "a", "0.7", "b"], "train_data_path": []})"), "0.3 a 0.7 b");
  EXPECT_EQ(data(R"({"data_path": [], "train_data_path": ["texts"]})"), "texts");
  EXPECT_EQ(data(R"({"data_path": [], "mock_data": true})"), "made-up data (--mock-data)");
  EXPECT_EQ(data("{}"), "");
}

}  // namespace
}  // namespace megalith
