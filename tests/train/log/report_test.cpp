#include "libcore/train/log/report.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

const char* const kMetrics =
    R"({"type": "start", "time": 1.0, "parameters": 1234, "args": {"num-layers": 2}}
{"type": "train", "time": 2.0, "iteration": 1, "loss": 6.5, "lr": 0.001, "grad_norm": 1.5, "tokens_per_s": 1000.0}
{"type": "train", "time": 3.0, "iteration": 2, "loss": 9.25, "lr": 0.001, "grad_norm": null, "tokens_per_s": 1000.0}
{"type": "train", "time": 4.0, "iteration": 2, "loss": 5.5, "lr": 0.001, "grad_norm": 1.0, "tokens_per_s": 1000.0}
{"type": "valid", "time": 4.0, "iteration": 2, "loss": 5.75, "ppl": 314.0}
{"type": "sample", "time": 5.0, "iteration": 2, "prompt": "if a<b", "text": " & c:\n    pass"}
{"type": "end", "time": 6.0, "iteration": 2, "reason": "done"}
)";

TEST(Report, ShowsCurvesFactsAndSamples) {
  const test::TempDir dir;
  write_file(dir / "m.jsonl", kMetrics);
  write_report(dir / "m.jsonl", dir / "r.html");
  const std::string html = read_file(dir / "r.html");
  for (const char* part : {"<svg", "validation", "iteration 2: 5.75",
                           "<th>last training loss</th><td>5.5000</td>", "<th>parameters</th><td>1,234</td>",
                           "<b>if a&lt;b</b> &amp; c:\n    pass", "<th>num-layers</th><td>2</td>"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  EXPECT_EQ(html.find("9.25"), std::string::npos) << "a repeated iteration's older line counts";
  for (const char* outside : {"http", "<script", "src="})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
}

// A file that cannot be read as figures is refused when the run begins. Otherwise the run would append to it
// and could not write the report at its end.
TEST(Report, WantsFiguresInTheFileThatARunResumesWith) {
  const test::TempDir dir;
  EXPECT_EQ(check_figures(dir / "absent"), 0u);
  for (const auto& [good, runs] :
       {std::pair{std::string(), 0u}, {std::string("\n"), 0u}, {std::string(kMetrics), 1u}}) {
    write_file(dir / "m.jsonl", good);
    EXPECT_EQ(check_figures(dir / "m.jsonl"), runs);
  }
  for (const std::string bad :
       {"hello", "{\"text\": \"mine\"}\n", "[1]\n", "3\n", "{\"type\": \"train\"}\n"}) {
    write_file(dir / "m.jsonl", kMetrics + bad);
    try {
      check_figures(dir / "m.jsonl");
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << bad;
      EXPECT_EQ(std::string(error.what()).find(dir / "m.jsonl:8"), 0U) << error.what();
    }
  }
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Report, SaysEverythingOnce) {
  const test::TempDir dir;
  std::string metrics =
      R"({"type": "start", "iteration": 4, "iterations": 40, "memory_bytes": 2097152, "args": {"log_interval": 10}})"
      "\n";
  for (int i = 5; i <= 32; ++i)
    metrics += concat(R"({"type": "train", "iteration": )", i, R"(, "loss": )", i, R"(.0, "lr": 0.001, )",
                      R"("grad_norm": 1.0, "tokens_per_s": 10.0})", "\n");
  metrics += R"({"type": "sample", "iteration": 32, "prompt": "def main(", "text": "def main(self):"})"
             "\n";
  write_file(dir / "m.jsonl", metrics);
  write_report(dir / "m.jsonl", dir / "r.html");
  const std::string html = read_file(dir / "r.html");
  EXPECT_EQ(count(html, "<th>iterations</th>"), 1u);
  EXPECT_NE(html.find("<th>iterations</th><td>32 of 40</td>"), std::string::npos);
  EXPECT_EQ(html.find("memory_bytes"), std::string::npos);
  EXPECT_NE(html.find("<th>memory</th><td>2.00 MiB</td>"), std::string::npos);
  EXPECT_NE(html.find("<th>last training loss</th><td>25.5000"), std::string::npos) << "the mean of 21 to 30";
  EXPECT_EQ(count(html, "def main("), 1u);
  EXPECT_NE(html.find("<b>def main(</b>self):"), std::string::npos);
  EXPECT_NE(html.find("name=\"viewport\""), std::string::npos);
  EXPECT_EQ(count(html, "<svg class=\"wide\""), 4u);
  EXPECT_EQ(count(html, "<svg class=\"small\""), 4u) << "each chart, for narrow screens";
  EXPECT_EQ(count(html, ">training, smoothed</text>"), 2u);
  EXPECT_EQ(count(html, ">running median</text>"), 2u);
  EXPECT_EQ(count(html, "<g class=\"faint\">"), 6u) << "raw loss, raw norm and single steps are faint";
}

/// The lines of a run that continues after step `from` and ends after step `to`. The loss of step i is i +
/// `loss`.
std::string run_lines(int from, int to, int loss, int interval) {
  std::string lines = concat(R"({"type": "start", "iteration": )", from, R"(, "iterations": )", to,
                             R"(, "args": {"log_interval": )", interval, "}}\n");
  for (int i = from + 1; i <= to; ++i)
    lines += concat(R"({"type": "train", "iteration": )", i, R"(, "loss": )", loss + i,
                    R"(, "lr": 0.001, "grad_norm": 1.0, "tokens_per_s": 10.0})", "\n");
  return lines + concat(R"({"type": "sample", "iteration": )", to, R"(, "prompt": "run", "text": "run )",
                        loss, R"("})", "\n", R"({"type": "end", "iteration": )", to,
                        R"(, "reason": "end of )", loss, "\"}\n");
}

std::string report_of(const std::string& metrics) {
  const test::TempDir dir;
  write_file(dir / "m.jsonl", metrics);
  write_report(dir / "m.jsonl", dir / "r.html");
  return read_file(dir / "r.html");
}

TEST(Report, HoldsNothingOfARunThatItDidNotResume) {
  std::string fresh = run_lines(0, 60, 100, 5);
  fresh += run_lines(0, 10, 200, 5);
  const std::string html = report_of(fresh);
  EXPECT_NE(html.find("<th>iterations</th><td>10</td>"), std::string::npos) << html;
  EXPECT_NE(html.find("<th>last training loss</th><td>208.0000, the mean"), std::string::npos)
      << "of 6 to 10";
  EXPECT_EQ(html.find("run 100"), std::string::npos);
  EXPECT_EQ(html.find(" 100</pre>"), std::string::npos);
  EXPECT_EQ(count(html, "<h3>"), 1u) << "one sample";
  EXPECT_NE(html.find("end of 200"), std::string::npos);
  // The second run resumes from a checkpoint before the end of the first run.
  const std::string resumed = report_of(run_lines(0, 60, 100, 5) + run_lines(20, 30, 200, 5));
  EXPECT_NE(resumed.find("<th>iterations</th><td>30</td>"), std::string::npos);
  EXPECT_NE(resumed.find("<td>228.0000, the mean"), std::string::npos) << "of 26 to 30";
  EXPECT_EQ(resumed.find("<h3>iteration 60"), std::string::npos);
  // The second run starts over and is killed before its first step.
  const std::string started = R"({"type": "start", "iteration": 0, "args": {}})";
  EXPECT_EQ(report_of(run_lines(0, 60, 100, 5) + started + "\n").find("end of 100"), std::string::npos);
}

TEST(Report, KeepsTheLastLinesLossWhenNothingIsLeftToTrain) {
  const std::string first = run_lines(0, 30, 0, 5);
  const std::string want =
      "<th>last training loss</th><td>28.0000, the mean of the last line of the log</td>";
  EXPECT_NE(report_of(first).find(want), std::string::npos);
  EXPECT_NE(report_of(first + run_lines(30, 30, 0, 5)).find(want), std::string::npos);
  EXPECT_NE(report_of(first + run_lines(30, 30, 0, 7)).find(want), std::string::npos) << "as it was printed";
  EXPECT_NE(report_of(first + run_lines(30, 33, 0, 5)).find(want), std::string::npos) << "no line since";
}

TEST(Report, SaysTheLastStepsLossWhereNoLineWasPrinted) {
  EXPECT_NE(report_of(run_lines(0, 5, 0, 100)).find("<th>last training loss</th><td>5.0000</td>"),
            std::string::npos);
}

TEST(Report, SaysWhatTheRunIs) {
  const test::TempDir dir;
  write_file(
      dir / "m.jsonl",
      R"({"type": "start", "time": 1000.0, "iterations": 4, "parameters": 7, "command": "megalith-pretrain --save 'a<b'", )"
      R"("args": {"save": "runs/first/", "data_path": ["0.5", "corpus"]}})"
      "\n"
      R"({"type": "train", "time": 1060.0, "iteration": 2, "loss": 3.0, "tokens": 8192})"
      "\n"
      R"({"type": "train", "time": 1120.0, "iteration": 4, "loss": 2.0, "tokens": 16384})"
      "\n"
      R"({"type": "valid", "time": 1120.0, "iteration": 4, "loss": 2.5})"
      "\n"
      R"({"type": "test", "time": 1121.0, "iteration": 4, "loss": 2.75})"
      "\n"
      R"({"type": "tasks", "time": 1130.0, "iteration": 4, "seconds": 1.0, "results": )"
      R"({"own": {"acc": 0.25, "acc_stderr": 0.1}, "texts": {"bits_per_byte": 1.5}}})"
      "\n");
  write_report(dir / "m.jsonl", dir / "r.html");
  const std::string html = read_file(dir / "r.html");
  for (const char* part :
       {"<h1>Training run first</h1>", "<th>began</th><td>19", "<th>duration</th><td>2 min 10 s</td>",
        "<th>data</th><td>0.5 corpus</td>", "<th>command</th><td>megalith-pretrain --save 'a&lt;b'</td>",
        "<th>tokens</th><td>16,384</td>", "<th>test loss</th><td>2.7500</td>",
        "<th>last validation loss</th><td>2.5000</td>", "<th>own acc</th><td>0.2500</td>",
        "<h2>Tasks: right answers</h2>", "<h2>Tasks: bits per byte</h2>", ">test</text>", ">tokens</text>",
        "iteration 4, 16.4k tokens\ntraining: 2.0000\nvalidation: 2.5000\ntest: 2.7500"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  EXPECT_EQ(html.find("acc_stderr"), std::string::npos);
}

TEST(Report, ShowsTheLastOfSeveralRunsInAFile) {
  const std::string html = report_of(run_lines(0, 60, 100, 5) + run_lines(0, 10, 200, 5));
  EXPECT_NE(html.find("<th>earlier runs in its file</th><td>1, which megalith report shows"),
            std::string::npos);
  EXPECT_EQ(report_of(run_lines(0, 10, 200, 5)).find("earlier runs"), std::string::npos);
  EXPECT_EQ(report_of(run_lines(0, 10, 200, 5) + run_lines(5, 20, 0, 5)).find("earlier runs"),
            std::string::npos)
      << "it was resumed";
}

TEST(Report, NamesTheLineThatIsNotJson) {
  const test::TempDir dir;
  write_file(dir / "m.jsonl", "{\"type\": \"start\"}\n{\"type\": \"train\", \"iter\n");
  try {
    write_report(dir / "m.jsonl", dir / "r.html");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("m.jsonl:2"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(file_exists(dir / "r.html"));
}

}  // namespace
}  // namespace megalith
