// megalith-report and megalith-top, on files of figures as runs write them.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/terminal.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// The lines of a run that has done `steps` of 20 steps.
std::string figures(double rate, int steps) {
  std::string out =
      concat(R"({"type": "start", "time": 1000, "iterations": 20, "args": {"lr": )", rate, "}}\n");
  for (int i = 1; i <= steps; ++i)
    out += concat(R"({"type": "train", "time": )", 1000 + i, R"(, "iteration": )", i, R"(, "loss": )",
                  9 - 0.25 * i, R"(, "tokens": )", 512 * i, "}\n");
  return out;
}
const char* const kEnd = R"({"type": "end", "time": 1021, "iteration": 20, "reason": "all steps done"})"
                         "\n";

class ReportApp : public testing::Test {
 protected:
  ReportApp() {
    write_file(dir_ / "run.jsonl", figures(0.1, 20) + kEnd);
    write_file(dir_ / "other.jsonl", figures(0.2, 7));
  }
  CommandResult run(const std::string& command) const { return run_command(in_folder(command)); }
  std::string in_folder(const std::string& command) const {
    return concat("cd ", dir_.path().string(), " && PATH=", MEGALITH_BINARY_DIR, "/bin:$PATH; ", command);
  }
  TempDir dir_;
};

TEST_F(ReportApp, ComparesRuns) {
  const CommandResult result = run("megalith-report run.jsonl other.jsonl --html out.html");
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* part : {"all steps done", "7 of 20", "option that differs", "lr", "0.2"})
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  const std::string html = read_file(dir_ / "out.html");
  EXPECT_NE(html.find("<h2>Loss over tokens</h2>"), std::string::npos);
  EXPECT_NE(html.find("<tr><th>lr</th><td>0.1</td><td>0.2</td></tr>"), std::string::npos);
}

TEST_F(ReportApp, DrawsOneRunAsTheRunItself) {
  ASSERT_EQ(run("megalith-report other.jsonl --html out.html").code, 0);
  const std::string html = read_file(dir_ / "out.html");
  EXPECT_NE(html.find("<h1>Training run other</h1>"), std::string::npos);
  EXPECT_NE(html.find("<h2>Loss</h2>"), std::string::npos);
}

TEST_F(ReportApp, RefusesWhatIsNotARun) {
  write_file(dir_ / "text.jsonl", "{\"text\": \"mine\"}\n");
  const CommandResult wrong = run("megalith-report run.jsonl text.jsonl");
  EXPECT_EQ(wrong.code, 65) << wrong.err;
  EXPECT_NE(wrong.err.find("text.jsonl:1"), std::string::npos) << wrong.err;
  EXPECT_EQ(run("megalith-report absent.jsonl").code, 66);
  EXPECT_EQ(run("megalith-report run.jsonl --html run.jsonl").code, 64);
  EXPECT_EQ(run("megalith-top absent.jsonl").code, 66);
  EXPECT_EQ(run("timeout 20 megalith-top .").code, 66);
  EXPECT_EQ(run("timeout 20 megalith-top text.jsonl").code, 65);
}

TEST_F(ReportApp, PrintsOnePictureWithoutATerminal) {
  const CommandResult result = run("timeout 20 megalith-top other.jsonl");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
  EXPECT_NE(result.out.find("step          7 of 20\n"), std::string::npos) << result.out;
}

TEST_F(ReportApp, FollowsARunUntilItEnds) {
  TerminalCommand top(in_folder("megalith-top other.jsonl"), 60);
  EXPECT_TRUE(top.wait_for("7 of 20"));
  const auto append = [&](const std::string& text) {
    std::ofstream(dir_ / "other.jsonl", std::ios::app) << text << std::flush;
  };
  const std::string more = R"({"type": "train", "time": 1008, "iteration": 8, "loss": 4, "tokens": 4096})";
  append(more.substr(0, 30));  // half a line is not shown
  append(more.substr(30) + "\n");
  EXPECT_TRUE(top.wait_for("8 of 20"));
  append(kEnd);
  EXPECT_TRUE(top.wait_for("ended: all steps done"));
  const CommandResult result = top.finish();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out.find("?25l"), std::string::npos) << "Ctrl-C would leave a terminal without a cursor";
  EXPECT_LE(longest_line(result.out), 60u * 3) << "a block of the curve has three bytes";
}

// Another run under the same name, whose file is shorter, or as long but with other lines.
TEST_F(ReportApp, FollowsAFileThatIsWrittenAnew) {
  TerminalCommand top(in_folder("megalith-top other.jsonl"), 60);
  EXPECT_TRUE(top.wait_for("7 of 20"));
  write_file(dir_ / "other.jsonl", figures(0.2, 3));
  EXPECT_TRUE(top.wait_for("3 of 20")) << "cut";
  write_file(dir_ / "other.jsonl", figures(0.3, 12));
  EXPECT_TRUE(top.wait_for("12 of 20")) << "longer, with another first line";
  std::ofstream(dir_ / "other.jsonl", std::ios::app) << kEnd << std::flush;
  EXPECT_TRUE(top.wait_for("ended: all steps done"));
  EXPECT_EQ(top.finish().code, 0);
}

TEST_F(ReportApp, EndsAtCtrlC) {
  TerminalCommand top(in_folder("megalith-top other.jsonl"), 60);
  EXPECT_TRUE(top.wait_for("7 of 20"));
  top.type("\x03");
  EXPECT_NE(top.finish().code, 0);
}

TEST_F(ReportApp, RunsTheCommandsOfItsPage) {
  fs::copy(dir_ / "run.jsonl", dir_ / "small.jsonl");
  fs::copy(dir_ / "other.jsonl", dir_ / "large.jsonl");
  fs::copy(dir_ / "run.jsonl", dir_ / "report.html.jsonl");
  const std::vector<std::string> commands = doc_commands("reports.md");
  for (const std::string& command : commands) EXPECT_EQ(run(command).code, 0) << command;
  EXPECT_GE(commands.size(), 3u);
  EXPECT_TRUE(file_exists(dir_ / "compared.html"));
}

}  // namespace
}  // namespace megalith::test
