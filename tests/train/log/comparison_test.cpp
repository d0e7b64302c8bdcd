#include "libcore/train/log/comparison.h"

#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

/// A run of twelve steps with that loss at its end; `seconds` and `tokens` for each step.
std::string run(double rate, double loss, double seconds, int tokens) {
  std::string out = concat(R"({"type": "start", "time": 1000, "iterations": 20, "args": {"lr": )", rate,
                           R"(, "seed": 7}})", "\n");
  for (int i = 1; i <= 12; ++i)
    out += concat(R"({"type": "train", "time": )", 1000 + seconds * i, R"(, "iteration": )", i,
                  R"(, "loss": )", loss + 12 - i, R"(, "tokens_per_s": 50, "tokens": )", tokens * i, "}\n");
  return out + concat(R"({"type": "valid", "time": )", 1000 + seconds * 12, R"(, "iteration": 12, "loss": )",
                      loss + 0.5, "}\n");
}

class Comparison : public testing::Test {
 protected:
  Comparison() {
    write_file(dir_ / "small.jsonl", run(0.1, 3, 2, 1000));
    write_file(dir_ / "big.html.jsonl",
               run(0.2, 2, 20, 4000) + R"({"type": "end", "time": 2000, "iteration": 12, "reason": "done"})"
                                       "\n");
  }
  test::TempDir dir_;
};

TEST_F(Comparison, DrawsLossesOverIterationsTokensAndTime) {
  const std::vector<RunHistory> runs = read_named_runs({dir_ / "small.jsonl", dir_ / "big.html.jsonl"});
  const std::string html = comparison_page(runs);
  for (const char* part :
       {"<h1>2 training runs</h1>", "<h2>Loss over iterations</h2>", "<h2>Loss over tokens</h2>",
        "<h2>Loss over time</h2>", ">minutes</text>", ">tokens</text>", ">small</text>", ">big</text>",
        "iteration 12\nsmall, training: 4.0000\nsmall, validation: 3.5000\nbig, training: 3.0000\n"
        "big, validation: 2.5000",
        "tokens 48000\nbig, training: 3.0000\nbig, validation: 2.5000",
        "minutes 4.0000\nbig, training: 3.0000\nbig, validation: 2.5000",
        "<tr><th>lr</th><td>0.1</td><td>0.2</td></tr>",
        "<tr><th>iterations</th><td>12 of 20</td><td>12 of 20</td></tr>",
        "<tr><th>validation</th><td>3.5000</td><td>2.5000</td></tr>", "<td>done</td>", "<td>no end yet, 19"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  EXPECT_EQ(html.find("seed"), std::string::npos) << "both runs have the same";
  for (const char* outside : {"http", "<script", "src="})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
}

TEST_F(Comparison, IsATableOnATerminal) {
  const std::vector<RunHistory> runs = read_named_runs({dir_ / "small.jsonl", dir_ / "big.html.jsonl"});
  const std::string text = comparison_text(runs, 80);
  for (const char* part : {"small", "big", "12 of 20", "3.5000", "2.5000", "option that differs", "lr"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  for (const std::string& line : split(text, '\n')) EXPECT_LE(line.size(), 80u) << line;
}

TEST_F(Comparison, NamesRunsThatAFileOrFoldersShare) {
  std::filesystem::create_directory(dir_ / "other");
  write_file(dir_ / "other/small.jsonl", run(0.1, 3, 2, 1000) + run(0.1, 3, 2, 1000));
  const std::vector<RunHistory> runs =
      read_named_runs({dir_ / "small.jsonl", dir_ / "other/small.jsonl", dir_ / "big.html.jsonl"});
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[0].name, dir_ / "small.jsonl");
  EXPECT_EQ(runs[1].name, (dir_ / "other/small.jsonl") + ", run 1");
  EXPECT_EQ(runs[2].name, (dir_ / "other/small.jsonl") + ", run 2");
  EXPECT_EQ(runs[3].name, "big");
}

TEST_F(Comparison, TakesFilesWithoutASingleStep) {
  write_file(dir_ / "empty.jsonl", "");
  const std::vector<RunHistory> runs = read_named_runs({dir_ / "empty.jsonl", dir_ / "small.jsonl"});
  EXPECT_NE(comparison_page(runs).find(">small</text>"), std::string::npos);
  EXPECT_NE(comparison_text(runs, 80).find("empty"), std::string::npos);
}

}  // namespace
}  // namespace megalith
