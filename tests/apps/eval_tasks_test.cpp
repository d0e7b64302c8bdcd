// --eval-tasks of the programs that train: the figures of the last evaluation must be those that
// megalith-eval gives for what the run has saved.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class EvalTasks : public testing::Test {
 protected:
  EvalTasks() {
    fs::copy(test_data("text/goldens/trained"), dir_ / "tokenizer");
    fs::copy(test_data("evaluate/goldens"), dir_ / "tasks");
    fs::create_directory(dir_ / "texts");
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += concat("def main", i, "(self): return the opposite of ", i * i, " words\n");
    for (const char* const name : {"a.txt", "b.txt"}) write_file(dir_ / concat("texts/", name), text);
  }
  CommandResult run(const std::string& command) const {
    return run_command(concat("cd ", dir_.path().string(), " && OMP_WAIT_POLICY=passive PATH=",
                              MEGALITH_BINARY_DIR, "/bin:$PATH ", command));
  }
  CommandResult train(const std::string& options) const { return run(kTrain + options); }
  Json last_tasks(const std::string& log) const {
    const std::vector<Json> all = log_lines(dir_ / log, "tasks");
    EXPECT_FALSE(all.empty());
    return all.empty() ? Json() : all.back();
  }
  /// Compares the last figures in a run's log with those of megalith-eval.
  void expect_figures(const std::string& log, const std::string& model, const std::string& options) const {
    const CommandResult result =
        run(concat("megalith-eval --threads 1 --model ", model, " --json results.json ", options));
    ASSERT_EQ(result.code, 0) << result.err;
    const Json wanted = Json::load(dir_ / "results.json")["results"], found = last_tasks(log)["results"];
    ASSERT_EQ(found.as_object().size(), wanted.as_object().size());
    for (const auto& [task, figures] : wanted.as_object())
      for (const auto& [name, value] : figures.as_object()) {
        if (!value.is_number()) continue;
        const std::string own = name.substr(0, name.find(','));
        ASSERT_NE(found[task].find(own), nullptr) << task << " " << own;
        const double theirs = value.as_double(), ours = found[task][own].as_double();
        EXPECT_NEAR(ours, theirs, 1e-4 * std::abs(theirs))
            << task << " " << own << ": " << ours << ", " << theirs;
      }
  }

  const std::string kTrain =
      "megalith-pretrain --num-layers 2 --hidden-size 16 --num-attention-heads 2 --seq-length 64 "
      "--max-position-embeddings 256 --micro-batch-size 2 --global-batch-size 4 --train-iters 4 --lr 0.01 "
      "--train-data-path texts --tokenizer-model tokenizer --eval-iters 0 --log-interval 2 --threads 1 ";
  TempDir dir_;
};

TEST_F(EvalTasks, GiveTheFiguresOfTheSavedModel) {
  const std::string tasks = "hellaswag=tasks/hellaswag.jsonl,tasks/own.jsonl,tasks/texts.jsonl";
  for (const std::string ranks : {"", "--nproc 2 "}) {
    const CommandResult result =
        train(ranks + "--eval-interval 2 --save ck" + (ranks.empty() ? "1" : "2") +
              " --log-json run.jsonl --tensorboard-dir tb --report r.html --eval-tasks " + tasks +
              " --eval-num-fewshot 1 --eval-limit 7");
    ASSERT_EQ(result.code, 0) << result.all();
    std::vector<int64_t> iterations;
    for (const Json& entry : log_lines(dir_ / "run.jsonl", "tasks"))
      iterations.push_back(entry["iteration"].as_int());
    EXPECT_EQ(iterations, (std::vector<int64_t>{2, 4})) << "at each evaluation, the last one once";
    EXPECT_NE(result.out.find(" tasks at iteration 4 | hellaswag acc: "), std::string::npos) << result.out;
    expect_figures("run.jsonl", ranks.empty() ? "ck1" : "ck2",
                   "--tasks " + tasks + " --num-fewshot 1 --limit 7");
    EXPECT_NE(read_file(dir_ / "r.html").find("<th>own acc_norm</th>"), std::string::npos);
    EXPECT_EQ(run("cat tb/* | grep -qa 'hellaswag acc_norm'").code, 0);
    run("rm -r run.jsonl tb r.html");
  }
}

TEST_F(EvalTasks, OfATunedModelAreThoseOfItsResult) {
  fs::copy(test_data("parity/goldens/generate-gpt2"), dir_ / "model");
  fs::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
  fs::create_directory(dir_ / "data");
  std::string records;
  for (int i = 0; i < 24; ++i)
    records += concat("{\"src\": \"", std::string(static_cast<size_t>(1 + i % 4), 'a'), " is\", \"tgt\": \" ",
                      i % 4, "\"}\n");
  write_file(dir_ / "data/train.json", records);
  const std::string tune =
      "megalith-finetune --model model --data data --threads 1 --train-iters 3 --lr 0.01 "
      "--eval-tasks tasks/own.jsonl,lambada=tasks/lambada.jsonl ";
  const std::string tasks = "--tasks tasks/own.jsonl,lambada=tasks/lambada.jsonl";
  CommandResult result = run(tune + "--output-dir full --log-json full.jsonl");
  ASSERT_EQ(result.code, 0) << result.all();
  expect_figures("full.jsonl", "full/hf", tasks);
  result = run(tune + "--output-dir lora --log-json lora.jsonl --lora");
  ASSERT_EQ(result.code, 0) << result.all();
  expect_figures("lora.jsonl", "model --adapter lora", tasks);
  result = run(tune + "--output-dir none --no-do-train --log-json none.jsonl");
  ASSERT_EQ(result.code, 0) << result.all();
  expect_figures("none.jsonl", "model", tasks);
  for (const auto& [option, words] :
       {std::pair{"--prefix-tuning", "--eval-tasks and --prefix-tuning cannot be combined"},
        {"--no-do-eval", "--eval-tasks and --no-do-eval contradict each other"}}) {
    result = run(tune + "--output-dir other " + option);
    EXPECT_EQ(result.code, 64) << option;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  }
}

// "memory known before the run" has a part for the tasks, and so has --dry-run.
TEST_F(EvalTasks, AreCountedInTheMemoryBeforeTheRun) {
  const auto counted = [&](const std::string& options) {
    const CommandResult result = train(options);
    EXPECT_EQ(result.code, 0) << options << result.all();
    return result.out;
  };
  const test::Pattern part("--eval-tasks [0-9.]+ KiB: ");
  for (const std::string run : {"--dry-run ", ""}) {
    EXPECT_TRUE(part.is_in(counted(run + "--eval-tasks tasks/own.jsonl"))) << run;
    EXPECT_EQ(counted(run).find("--eval-tasks"), std::string::npos) << run;
  }
  const CommandResult refused = train("--eval-tasks tasks/own.jsonl --device-memory-gb 0.00001 --save none");
  EXPECT_EQ(refused.code, 64) << refused.all();
  EXPECT_TRUE(part.is_in(refused.err)) << refused.err;
  EXPECT_FALSE(fs::exists(dir_ / "none"));
}

// A signal ends the reading of tasks after a pass of the model, not at their end.
TEST_F(EvalTasks, EndAtASignal) {
  std::string items;
  for (int i = 0; i < 100000; ++i)
    items += concat("{\"context\": \"def main", i, "(self): return ", i * i,
                    "\", \"choices\": [\" the words\", \" the opposite\"], \"answer\": 1}\n");
  write_file(dir_ / "many.jsonl", items);
  // The tasks are read within the run, and at its end.
  for (const auto& [options, step] :
       {std::pair{"--eval-interval 2", 2}, {"--eval-interval 100", 4}, {"--eval-interval 2 --nproc 2", 2}}) {
    write_file(
        dir_ / "signal.sh",
        concat(kTrain, options, " --save ck --log-json s.jsonl --eval-tasks many.jsonl & pid=$!\n",
               "until grep -qs '\"iteration\": ", step, ",' s.jsonl || ! kill -0 $pid; do sleep 0.02; done\n",
               "sleep 0.2; began=$(date +%s%N); kill -TERM $pid; wait $pid; code=$?\n",
               "echo took $((($(date +%s%N) - began) / 1000000)); exit $code\n"));
    const CommandResult result = run("sh signal.sh");
    EXPECT_EQ(result.code, 75) << options << result.all();
    EXPECT_NE(
        result.all().find(concat("--eval-tasks at iteration ", step, ": stopped before its end, no figures")),
        std::string::npos)
        << result.all();
    const size_t took = result.out.find("took ");
    ASSERT_NE(took, std::string::npos) << result.out;
    EXPECT_LT(parse_int(trim(result.out.substr(took + 5))).value_or(100000), 5000) << options;
    EXPECT_TRUE(log_lines(dir_ / "s.jsonl", "tasks").empty());
    EXPECT_TRUE(fs::exists(dir_ / concat("ck/iter_000000", step))) << options;
    run("rm -r ck s.jsonl");
  }
}

TEST_F(EvalTasks, AreRefusedByNameWhereTheyCannotRun) {
  struct Case {
    std::string options, words;
    int code;
  };
  write_file(dir_ / "bad.jsonl", "{\"context\": \"a\"}\n");
  for (const auto& [options, words, code] :
       {Case{"--nproc 2 --tensor-model-parallel-size 2 --eval-tasks tasks/own.jsonl",
             "--eval-tasks needs the whole model on one rank, not on 2", 64},
        {"--nproc 2 --pipeline-model-parallel-size 2 --eval-tasks tasks/own.jsonl",
         "--eval-tasks needs the whole model on one rank, not on 2", 64},
        {"--eval-limit 3", "--eval-limit needs --eval-tasks", 64},
        {"--eval-num-fewshot 3", "--eval-num-fewshot needs --eval-tasks", 64},
        {"--eval-tasks helaswag=tasks/hellaswag.jsonl", "did you mean hellaswag?", 64},
        {"--eval-tasks tasks/own.jsonl --eval-fewshot-data own=tasks/own.jsonl",
         "--eval-fewshot-data is not used without --eval-num-fewshot", 64},
        {"--eval-tasks absent.jsonl", "absent.jsonl", 66},
        {"--eval-tasks tasks/own.jsonl --log-json tasks/own.jsonl", "--eval-tasks", 64},
        {"--eval-tasks bad.jsonl", "bad.jsonl:1", 65}}) {
    const CommandResult result = train(options + " --save none");
    EXPECT_EQ(result.code, code) << options << result.all();
    EXPECT_NE(result.err.find(words), std::string::npos) << options << ": " << result.err;
    EXPECT_FALSE(fs::exists(dir_ / "none")) << options;
  }
  const CommandResult result = run(
      "megalith-pretrain --num-layers 2 --hidden-size 16 --num-attention-heads 2 --seq-length 8 "
      "--max-position-embeddings 8 --micro-batch-size 2 --train-iters 4 --lr 0.01 --mock-data --vocab-size 9 "
      "--eval-tasks tasks/own.jsonl");
  EXPECT_NE(result.err.find("--eval-tasks needs a tokenizer"), std::string::npos) << result.err;
}

TEST_F(EvalTasks, RunTheCommandOfItsPage) {
  write_file(dir_ / "run.yaml",
             "num-layers: 2\nhidden-size: 16\nnum-attention-heads: 2\nseq-length: 64\n"
             "max-position-embeddings: 64\nmicro-batch-size: 2\ntrain-iters: 2\nlr: 0.01\n"
             "train-data-path: texts\ntokenizer-model: tokenizer\neval-iters: 0\nthreads: 1\n");
  fs::copy(dir_ / "tasks/own.jsonl", dir_ / "questions.jsonl");
  int found = 0;
  for (const std::string& command : doc_commands("evaluate.md")) {
    if (!command.starts_with("megalith-pretrain ")) continue;
    const CommandResult result = run(command);
    EXPECT_EQ(result.code, 0) << result.all();
    EXPECT_NE(result.out.find(" tasks at iteration 2 | questions acc: "), std::string::npos) << result.out;
    ++found;
  }
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace megalith::test
