#include "libcore/train/log/metrics.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/train/log/report.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::TempDir;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

StepFigures step(int64_t iteration, double loss) {
  return {.iteration = iteration,
          .consumed_samples = iteration * 16,
          .loss = loss,
          .rate = 2e-4,
          .next_rate = 1e-4,
          .grad_norm = 1.23449,
          .seconds = 0.125,
          .samples = 16,
          .tokens = 4096,
          .flops = 1e12,
          .peak_memory = 3 << 20};
}

// The expected line follows the format strings of Megatron-LM's training_log: {:8d}, {:12d}, {:.1f}, {:.6E},
// {:5d}, {:.3f}, {:3d}.
TEST(TrainLine, IsMegatronsLine) {
  TrainLine line({.iterations = 100});
  line.add(step(9, 6.0));
  line.add(step(10, 6.25));
  EXPECT_EQ(
      line.text(),
      " iteration       10/     100 | consumed samples:          160 | elapsed time per iteration (ms): "
      "125.0 |"
      " learning rate: 1.000000E-04 | global batch size:    16 | lm loss: 6.125000E+00 | loss scale: 1.0 |"
      " grad norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:   0 | tokens/s: "
      "32768.0 | TFLOP/s: 8.000 | memory: 3.00 MiB |");
}

// training_log prints ' throughput per GPU (TFLOP/s/GPU): {:.1f} |' after the elapsed time.
TEST(TrainLine, TellsThroughputOnRequest) {
  TrainLine line({.iterations = 100, .ranks = 4, .throughput = true, .machine_flops = 16e12});
  line.add(step(9, 6.0));
  EXPECT_NE(line.text().find(" (ms): 125.0 | throughput per GPU (TFLOP/s/GPU): 2.0 | learning rate: "),
            std::string::npos)
      << line.text();
  EXPECT_NE(line.text().find(" | TFLOP/s: 8.000 | MFU: 50.0% | memory: "), std::string::npos) << line.text();
}

TEST(TrainLine, LeavesSkippedStepsOutOfTheMean) {
  TrainLine line({.iterations = 100});
  StepFigures bad = step(11, kNan);
  bad.skipped = true;
  line.add(step(10, 6.0));
  line.add(bad);
  EXPECT_NE(line.text().find("| lm loss: 6.000000E+00 |"), std::string::npos) << line.text();
  EXPECT_NE(line.text().find("skipped iterations:   1 | number of nan iterations:   1 |"), std::string::npos)
      << line.text();
  line.clear();
  line.add(bad);
  EXPECT_EQ(line.text().find("lm loss"), std::string::npos) << line.text();
  StepFigures steep = step(12, 6.0);  // a finite loss with a non-finite gradient
  steep.skipped = true;
  line.add(steep);
  EXPECT_NE(line.text().find("skipped iterations:   2 | number of nan iterations:   1 |"), std::string::npos)
      << line.text();
  line.clear();
  line.add(step(13, 5.0));
  EXPECT_NE(line.text().find("skipped iterations:   0"), std::string::npos) << line.text();
}

TEST(TrainLine, KeepsNumbersThatOutgrowTheirColumn) {
  TrainLine line({.iterations = 1234567890});
  StepFigures far = step(123456789, 1.0);
  far.consumed_samples = 12345678900000;
  line.add(far);
  EXPECT_TRUE(
      line.text().starts_with(" iteration 123456789/1234567890 | consumed samples: 12345678900000 | "))
      << line.text();
}

TEST(TrainLine, HasTheRateThatItsLogStyleLogs) {
  TrainLine next({.iterations = 100}), own({.iterations = 100, .rate = &StepFigures::rate});
  for (TrainLine* const line : {&next, &own}) line->add(step(9, 6.0));
  EXPECT_NE(next.text().find(" learning rate: 1.000000E-04 |"), std::string::npos) << next.text();
  EXPECT_NE(own.text().find(" learning rate: 2.000000E-04 |"), std::string::npos) << own.text();
}

TEST(EvaluationLine, IsMegatronsLine) {
  EXPECT_EQ(evaluation_line("iteration 100", 5.1),
            " validation loss at iteration 100 | lm loss value: 5.100000E+00 | lm loss PPL: 1.640219E+02 |");
  EXPECT_EQ(evaluation_line("iteration 100", 5.1, "wiki").find(" validation-wiki loss at iteration 100 | "),
            0U);
  EXPECT_NE(evaluation_line("iteration 1 on test set", 30).find("PPL: 4.851652E+08"),
            std::string::npos);  // exp(20)
}

std::vector<Json> lines_of(const std::string& path) {
  std::vector<Json> lines;
  for (const std::string& line : split(trim(read_file(path)), '\n')) lines.push_back(Json::parse(line, path));
  return lines;
}

TEST(RunLog, HasTheRateThatItsLogStyleLogs) {
  const TempDir folder;
  for (const auto& [rate, wanted] : {std::pair(&StepFigures::next_rate, 1e-4), {&StepFigures::rate, 2e-4}}) {
    const std::string path = folder / "run.jsonl";
    RunLog({.json = path, .rate = rate}).step({.figures = step(1, 6.0)});
    EXPECT_EQ(lines_of(path).back()["lr"].as_double(), wanted);
  }
}

TEST(TasksLine, HasTheFormOfAnEvaluationsLine) {
  EXPECT_EQ(
      tasks_line({.iteration = 100,
                  .figures = {{"own", "acc", 0.25, 0.1}, {"t", "word_perplexity", 2.5e9}},
                  .seconds = 12.34}),
      " tasks at iteration 100 | own acc: 0.2500 | t word_perplexity: 2.5000E+09 | elapsed time (s): 12.3 |");
}

TEST(RunLog, WritesOneObjectALine) {
  const TempDir folder;
  const std::string path = folder / "run.jsonl";
  {
    RunLog log({.json = path});
    log.start({.iteration = 0, .args = Json::object()});
    log.step({.figures = step(1, 6.0)});
    StepFigures bad = step(2, kNan);
    bad.skipped = true;
    log.step({.figures = bad});
    log.evaluation({.iteration = 2, .loss = 5.0});
    log.evaluation({.test = true, .iteration = 2, .loss = 5.5});
    log.tasks({.iteration = 2,
               .figures = {{"own", "acc", 0.25, 0.1}, {"own", "acc_norm", 0.5}, {"t", "perplexity", 9.0}},
               .seconds = 1.5});
    log.sample({2, "def", "def \"x\"\n"});
    log.saved({2, "out/iter_0000002"});
    log.end({.iteration = 2, .reason = "done"});
  }
  const std::vector<Json> lines = lines_of(path);
  ASSERT_EQ(lines.size(), 9U);
  EXPECT_EQ(lines[0]["type"].as_string(), "start");
  EXPECT_EQ(lines[1]["loss"].as_double(), 6.0);
  EXPECT_EQ(lines[1]["tokens_per_s"].as_double(), 32768);
  EXPECT_EQ(lines[1]["consumed_samples"].as_int(), 16);
  EXPECT_TRUE(lines[2]["loss"].is_null());
  EXPECT_TRUE(lines[2]["skipped"].as_bool());
  EXPECT_EQ(lines[3]["type"].as_string(), "valid");
  EXPECT_NEAR(lines[3]["ppl"].as_double(), 148.41315910257660, 1e-12);
  EXPECT_EQ(lines[4]["type"].as_string(), "test");
  EXPECT_EQ(lines[5]["results"].dump(),
            R"({"own": {"acc": 0.25, "acc_stderr": 0.1, "acc_norm": 0.5}, "t": {"perplexity": 9.0}})");
  EXPECT_EQ(lines[6]["text"].as_string(), "def \"x\"\n");
  EXPECT_EQ(lines[8]["reason"].as_string(), "done");
}

std::vector<std::string> without_time(const std::string& path) {
  std::vector<std::string> lines;
  for (const std::string& line : split(trim(read_file(path)), '\n')) {
    const size_t time = line.find("\"time\""), end = line.find(", ", time);
    lines.push_back(line.substr(0, time) + line.substr(end + 2));
  }
  return lines;
}

// Lines that an earlier version wrote, but for the command, which is new.
TEST(RunLog, HasTheBytesOfEarlierVersions) {
  const TempDir folder;
  const std::string path = folder / "run.jsonl";
  {
    RunLog log({.json = path});
    log.start({.iteration = 3,
               .iterations = 9,
               .parameters = 100,
               .memory_bytes = 4096,
               .args = Json::Object{{"lr", 0.1}},
               .command = "megalith-pretrain"});
    log.step({.figures = {.iteration = 4,
                          .consumed_samples = 16,
                          .loss = 6.5,
                          .next_rate = 1e-4,
                          .grad_norm = kNan,
                          .loss_scale = 2,
                          .seconds = 0.25,
                          .samples = 4,
                          .tokens = 8192,
                          .seen_tokens = 32768,
                          .flops = 1e12,
                          .peak_memory = 1 << 20,
                          .skipped = true}});
    log.evaluation({.test = true, .iteration = 4, .loss = 5.5});
    log.sample({4, "def", "def x\n"});
    log.saved({4, "out/it"});
    log.end({.iteration = 4, .reason = "done"});
  }
  EXPECT_EQ(
      without_time(path),
      (std::vector<std::string>{
          R"({"type": "start", "iteration": 3, "iterations": 9, "parameters": 100, "memory_bytes": 4096, )"
          R"("args": {"lr": 0.1}, "command": "megalith-pretrain"})",
          R"({"type": "train", "iteration": 4, "consumed_samples": 16, "tokens": 32768, "loss": 6.5, )"
          R"("lr": 1e-04, "grad_norm": null, "loss_scale": 2.0, "ms": 250.0, "tokens_per_s": 32768.0, )"
          R"("tflops": 4.0, "memory_bytes": 1048576, "batch": 4, "skipped": true})",
          R"({"type": "test", "iteration": 4, "loss": 5.5, "ppl": 244.69193226422038})",
          R"({"type": "sample", "iteration": 4, "prompt": "def", "text": "def x\n"})",
          R"({"type": "save", "iteration": 4, "path": "out/it"})",
          R"({"type": "end", "iteration": 4, "reason": "done"})"}));
}

TEST(RunLog, ContinuesInTheSameFile) {
  const TempDir folder;
  const std::string path = folder / "run.jsonl";
  RunLog({.json = path}).step({.figures = step(1, 6.0)});
  RunLog({.json = path, .start = 1}).step({.figures = step(2, 5.0)});
  EXPECT_EQ(lines_of(path).size(), 2U);
}

// A kill or a full disk can leave an incomplete line at the end of the file. The next run must remove it;
// otherwise its first line would be appended to it.
TEST(RunLog, TakesTheBeginningOfALineAway) {
  const test::TempDir dir;
  const std::string path = dir / "run.jsonl";
  RunLog({.json = path}).step({.figures = step(1, 6.0)});
  const std::string whole = read_file(path);
  ASSERT_TRUE(whole.ends_with("}\n"));
  for (size_t kept = 0; kept < whole.size(); ++kept) {
    write_file(path, whole + whole.substr(0, kept));
    check_figures(path);
    { const RunLog log({.json = path}); }
    EXPECT_EQ(read_file(path), whole) << kept;
  }
  for (const std::string mine : {"hello", "{\"text", "{\"type\": 1}\n", "\n{\"type\": 2"}) {
    write_file(path, mine);
    { const RunLog log({.json = path}); }
    EXPECT_EQ(read_file(path), mine == "\n{\"type\": 2" ? "\n" : mine);
  }
}

TEST(RunLog, NamesTheFileThatCannotBeWritten) {
  const TempDir folder;
  try {
    RunLog log({.json = folder / "no/such/run.jsonl"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(error.what()).find("no/such/run.jsonl"), std::string::npos);
  }
}

TEST(RunLog, IsSilentWhenNothingIsAskedFor) {
  RunLog log({});
  log.step({.figures = step(1, 6.0)});
  log.end({.iteration = 1, .reason = "done"});
}

}  // namespace
}  // namespace megalith
