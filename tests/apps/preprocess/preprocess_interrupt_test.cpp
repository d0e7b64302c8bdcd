// Tests that nothing is lost if a signal arrives, the disk is full, or two processes write the same output.
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class PreprocessInterrupted : public testing::Test {
 protected:
  PreprocessInterrupted() {
    fs::create_directories(dir_.path() / "whole");
    std::string lines;
    for (int i = 0; lines.size() < 30'000'000; ++i)
      lines += concat("{\"text\":\"Line ", i, " of a river.\",\"title\":[\"No. ", i, "\",\"\"]}\n");
    write_file(dir_ / "in.jsonl", lines);
  }
  CommandResult run(const std::string& script) const {
    return run_command(concat("cd ", dir_.path().string(), " && preprocess() { exec ", app("preprocess"),
                              " --tokenizer-model ", test_data("text/goldens/trained/tokenizer.json"),
                              " --input in.jsonl --json-keys text title --append-eod \"$@\"; }\n", script));
  }
  /// A script that starts the program with `options` and runs `meanwhile` as soon as the program has added
  /// tokens to the output. $pid is the program's process. The script ends with the program's exit code.
  static std::string during(const std::string& options, const std::string& meanwhile) {
    return concat(
        "size() { stat -c %s out_text_document.bin.partial 2>/dev/null || echo 0; }\nbefore=$(size)\n",
        "(preprocess --output-prefix out ", options, ") & pid=$!\n",
        "while [ $(size) -le $before ] && kill -0 $pid; do sleep 0.005; done\n", meanwhile, "\nwait $pid");
  }
  void expect_whole() const {
    ASSERT_EQ(run("(preprocess --output-prefix whole/out)").code, 0);
    std::vector<std::string> expected = {"in.jsonl", "whole"}, found;
    for (const auto& entry : fs::directory_iterator(dir_.path() / "whole")) {
      const std::string name = entry.path().filename();
      EXPECT_EQ(read_file(dir_ / name), read_file(entry.path())) << name;
      expected.push_back(name);
    }
    for (const auto& entry : fs::directory_iterator(dir_.path())) found.push_back(entry.path().filename());
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected);
    EXPECT_EQ(expected.size(), 8U);
  }
  TempDir dir_;
};

TEST_F(PreprocessInterrupted, ResumesToTheSameBytesAfterSignals) {
  for (const char* signal : {"TERM", "INT", "KILL"}) {
    const CommandResult stopped = run(during("--workers 2 --resume", concat("kill -", signal, " $pid")));
    EXPECT_EQ(stopped.code, signal == std::string("KILL") ? 128 + 9 : 75) << stopped.all();
    EXPECT_FALSE(file_exists(dir_ / "out_text_document.idx"));
  }
  const CommandResult whole = run("(preprocess --output-prefix out --workers 2 --resume)");
  EXPECT_EQ(whole.code, 0);
  EXPECT_NE(whole.all().find("Resuming after "), std::string::npos) << whole.all();
  expect_whole();
}

TEST_F(PreprocessInterrupted, LeavesNothingAfterASignalWithoutResume) {
  // The input never ends. The signal is sent once the program's first file exists: by then it handles
  // signals.
  const CommandResult stopped =
      run("mv in.jsonl lines; mkfifo in.jsonl; exec 9<>in.jsonl; head -n 100 lines >&9\n"
          "(preprocess --output-prefix out --workers 1) & pid=$!\n"
          "until ls -A | grep -q out || ! kill -0 $pid; do sleep 0.005; done; kill -TERM $pid; wait $pid");
  EXPECT_EQ(stopped.code, 128 + 15) << stopped.all();
  EXPECT_NE(stopped.all().find("nothing was written"), std::string::npos) << stopped.all();
  for (const auto& entry : fs::directory_iterator(dir_.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with("out")) << entry.path();
}

// The long line has no end: the file is a hole of 1 TiB. Reading it would take many minutes. The signal is
// sent when far more was read than the files of the tokenizer hold.
TEST_F(PreprocessInterrupted, StopsWithinALineThatItSkips) {
  for (const char* begin : {"", "{\\\"text\\\": \\\"", "[\\\"", "[{\\\"text\\\": \\\"a\\\"}, ["})
    for (const char* workers : {"1", "2"})
      for (const auto& [signal, code] : {std::pair("TERM", 128 + 15), {"INT", 128 + 2}}) {
        const CommandResult stopped = run(
            concat("printf '%b' \"", begin, "\" > in.jsonl; truncate -s 1T in.jsonl\n",
                   "(preprocess --output-prefix out --max-document-bytes 1000 --on-error skip --workers ",
                   workers, ") & pid=$!\nuntil [ $(sed -n 's/^rchar: //p' /proc/$pid/io) -gt 100000000 ] || ",
                   "! kill -0 $pid; do sleep 0.005; done\n",
                   "(sleep 20; kill -KILL $pid) >/dev/null 2>&1 & late=$!\nkill -", signal,
                   " $pid; wait $pid; code=$?; kill $late; exit $code"));
        EXPECT_EQ(stopped.code, code) << begin << workers << stopped.all();
        EXPECT_NE(stopped.all().find("nothing was written"), std::string::npos) << stopped.all();
      }
}

// A limit on the file size makes writes fail as on a full disk.
TEST_F(PreprocessInterrupted, ResumesAfterAFullDisk) {
  const CommandResult full =
      run("trap '' XFSZ; ulimit -f 1000; (preprocess --output-prefix out --workers 2 --resume)");
  EXPECT_EQ(full.code, 74);
  EXPECT_NE(full.all().find("File too large"), std::string::npos) << full.all();
  EXPECT_FALSE(file_exists(dir_ / "out_text_document.idx"));
  EXPECT_EQ(run("(preprocess --output-prefix out --workers 2 --resume)").code, 0);
  expect_whole();
}

TEST_F(PreprocessInterrupted, LeavesNothingOnAFullDiskWithoutResume) {
  EXPECT_EQ(run("trap '' XFSZ; ulimit -f 1000; (preprocess --output-prefix out)").code, 74);
  for (const auto& entry : fs::directory_iterator(dir_.path()))
    EXPECT_EQ(entry.path().filename().string().find("out"), std::string::npos) << entry.path();
}

// Suspends the first process while the second one tries to start.
TEST_F(PreprocessInterrupted, RefusesASecondProcessWithTheSameOutput) {
  const std::string second =
      "kill -STOP $pid; (preprocess --output-prefix out --resume); echo =$?; (preprocess --output-prefix "
      "out); echo =$?; (preprocess --output-prefix other); echo =$?; kill -CONT $pid";
  const CommandResult both = run(during("--workers 2 --resume", second));
  EXPECT_EQ(both.code, 0) << both.all();
  std::string codes;
  for (const std::string& line : split(both.out, '\n'))
    if (line.starts_with("=")) codes += line;
  EXPECT_EQ(codes, "=75=75=0") << both.all();
  EXPECT_NE(both.all().find("out.resume.json: another process is writing it"), std::string::npos)
      << both.all();
  EXPECT_NE(both.all().find("out_text_document: another process is writing it"), std::string::npos)
      << both.all();
  for (const char* dataset : {"text", "title"})
    for (const char* end : {".bin", ".idx", ".json"})
      EXPECT_TRUE(fs::remove(dir_ / concat("other_", dataset, "_document", end)));
  expect_whole();
}

}  // namespace
}  // namespace megalith::test
