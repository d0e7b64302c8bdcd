// Runs the commands of README.md and of the pages that name other programs' scripts (tests/DOC_COMMANDS).
// Only sizes are changed. The commands run in a folder with the files that they name.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/models.h"
#include "tests/support/once/pattern.h"
#include "tests/support/processes.h"
#include "tests/support/rank_processes.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// Maps an option, with its dashes, to the value that replaces the page's value.
using Values = std::map<std::string, std::string>;

/// Replaces the values of options in `command`. Each option must occur in it, followed by a space.
std::string with(std::string command, const Values& values) {
  for (const auto& [option, value] : values) {
    const test::Pattern given(concat(option, " [^ \n]+"));
    EXPECT_TRUE(given.is_in(command)) << option << " is not in " << command;
    command = test::replaced(command, given, concat(option, " ", value));
  }
  return command;
}

const Values kSmall = {
    {"--num-layers", "2"}, {"--hidden-size", "16"}, {"--num-attention-heads", "2"}, {"--seq-length", "16"}};

Values operator+(Values values, const Values& more) {
  values.insert(more.begin(), more.end());
  return values;
}

/// A folder with a tokenizer (as "tokenizer", and as vocab.json and merges.txt); a corpus, "corpus.jsonl", of
/// 120 documents whose "text" and "content" are the same string; and the dataset "corpus_text_document" of
/// this corpus.
class PageCommands : public testing::Test {
 protected:
  PageCommands() {
    fs::copy(test_data("text/goldens/trained"), dir_ / "tokenizer");
    for (const char* name : {"vocab.json", "merges.txt"}) fs::copy(dir_ / "tokenizer/" + name, dir_ / name);
    for (int i = 0; i < 120; ++i) {
      const std::string text =
          concat("def main", i, "(self): return ", i * i, " * harbour", std::string(60, 'x'));
      corpus_ += concat("{\"text\": \"", text, "\", \"content\": \"", text, "\"}\n");
    }
    write_file(dir_ / "corpus.jsonl", corpus_);
    ok("megalith-preprocess --input corpus.jsonl --output-prefix corpus --tokenizer-model tokenizer "
       "--append-eod");
  }
  CommandResult run(const std::string& script) const {
    return run_command(concat("cd ", dir_.path().string(), " && export OMP_NUM_THREADS=1 PATH=",
                              MEGALITH_BINARY_DIR, "/bin:$PATH\n", script));
  }
  CommandResult ok(const std::string& script) const {
    const CommandResult result = run(script);
    EXPECT_EQ(result.code, 0) << script << '\n' << result.all();
    return result;
  }
  /// The page's only command that begins with `start`.
  static std::string command(const std::string& page, const std::string& start) {
    std::vector<std::string> found;
    for (const std::string& command : doc_commands(page))
      if (command.starts_with(start)) found.push_back(command);
    EXPECT_EQ(found.size(), 1U) << page << ": " << start;
    return found.empty() ? "false" : found[0];
  }
  void expect_losses(const CommandResult& result, const std::string& iteration) const {
    const std::string log = result.all();
    EXPECT_TRUE(test::Pattern("iteration +" + iteration + "/.*lm loss: [0-9]").is_in(log)) << log;
  }
  TempDir dir_;
  std::string corpus_;
};

TEST_F(PageCommands, OfTheReadmeLeadFromTextToText) {
  fs::remove_all(dir_ / "tokenizer");
  fs::create_directories(dir_ / "questions");
  for (const char* name : {"train", "dev"})
    write_file(dir_ / concat("questions/", name, ".json"),
               "{\"src\": \"a is\", \"tgt\": \" 1\"}\n{\"src\": \"b is\", \"tgt\": \" 2\"}\n");
  const Values sizes =
      kSmall +
      Values{{"--max-position-embeddings", "16"}, {"--micro-batch-size", "2"}, {"--train-iters", "4"}};
  std::vector<std::string> programs;
  for (std::string command : doc_commands("README.md")) {
    if (!command.starts_with("megalith-") && !command.starts_with("echo "))
      continue;  // it builds or installs
    if (command.starts_with("megalith-tokenizer")) command = with(command, {{"--vocab-size", "300"}});
    if (command.starts_with("megalith-pretrain")) command = with(command, sizes);
    if (command.starts_with("megalith-merge")) {
      fs::create_directory(dir_ / "datasets");
      for (const char* end : {".bin", ".idx"})
        for (const char* name : {"a", "b"})
          fs::copy(dir_ / concat("codeparrot_content_document", end),
                   dir_ / concat("datasets/", name, "_content_document", end));
    }
    if (command.starts_with("megalith-eval"))
      write_file(dir_ / "questions.jsonl",
                 "{\"context\": \"a is\", \"choices\": [\"1\", \"2\"], \"answer\": 0}\n"
                 "{\"context\": \"b is\", \"choices\": [\"1\", \"2\"], \"answer\": 1}\n");
    programs.push_back(command.substr(0, command.find(' ')));
    const CommandResult result = ok(command);
    if (command.starts_with("megalith-generate")) {
      EXPECT_TRUE(result.out.starts_with("def hello_world():")) << result.out;
    }
  }
  const CommandResult shown = run("megalith-data inspect --json all_content_document");
  EXPECT_EQ(Json::parse(shown.out, "inspect")["documents"].as_int(), 240);
  EXPECT_EQ(trim(read_file(dir_ / "checkpoint/latest_checkpointed_iteration.txt")), "4");
  for (const char* file : {"report.html", "hf/model.safetensors", "tuned/adapter_model.safetensors"})
    EXPECT_TRUE(fs::exists(dir_ / file)) << file;
  EXPECT_GE(programs.size(), 10U);
}

TEST_F(PageCommands, OfCodeParrotLeadFromTextToText) {
  write_file(dir_ / "codeparrot_data.json", corpus_);
  const std::string page = "from-codeparrot.md";
  ok(command(page, "megalith-preprocess"));
  const CommandResult trained =
      ok(with(command(page, "megalith-pretrain"), kSmall + Values{{"--max-position-embeddings", "16"},
                                                                  {"--micro-batch-size", "1"},
                                                                  {"--global-batch-size", "16"},
                                                                  {"--train-iters", "40"},
                                                                  {"--lr-decay-iters", "40"},
                                                                  {"--lr-warmup-iters", "1"},
                                                                  {"--eval-interval", "40"},
                                                                  {"--eval-iters", "1"},
                                                                  {"--save-interval", "40"}}));
  expect_losses(trained, "40");  // earlier steps only halve the loss scale of 2^32
  ok(command(page, "megalith-convert codeparrot-small"));
  EXPECT_TRUE(ok(command(page, "megalith-generate")).out.starts_with("def hello_world():"));
  // Continues with a checkpoint file of Megatron, as the tutorial does.
  ok("megalith-convert codeparrot-small --to megatron --output M && mkdir X && cp vocab.json merges.txt X && "
     "cp M/*/mp_rank_00/model_optim_rng.pt X");
  ok(command(page, "megalith-convert X"));
  EXPECT_EQ(read_file(dir_ / "X/model.safetensors"), read_file(dir_ / "hf/model.safetensors"));
}

TEST_F(PageCommands, OfTheDdpTutorialTrain) {
  for (const char* folder : {"text/train", "text/valid"}) {
    fs::create_directories(dir_ / folder);
    write_file(dir_ / concat(folder, "/a.txt"), corpus_.substr(0, 4000));
  }
  const CommandResult result = ok(
      with(command("from-ddp-tutorial.md", "megalith-pretrain"), kSmall + Values{{"--stride", "16"},
                                                                                 {"--num-epochs", "1"},
                                                                                 {"--lr-warmup-iters", "2"},
                                                                                 {"--eval-freq", "5"},
                                                                                 {"--eval-iter", "1"},
                                                                                 {"--save-freq", "5"}}));
  EXPECT_NE(result.all().find("[GPU3] Epoch 1 finished, checkpoint: "), std::string::npos) << result.all();
  EXPECT_TRUE(fs::exists(dir_ / "checkpoint/model_000001.pth"));
}

TEST_F(PageCommands, OfDlcMergeAndPlan) {
  fs::create_directories(dir_ / "datasets/text/AA");
  for (const char* end : {".bin", ".idx"})
    fs::rename(dir_ / concat("corpus_text_document", end),
               dir_ / concat("datasets/text/AA/a_text_document", end));
  for (const std::string& command : doc_commands("from-dlc.md")) {
    const CommandResult result = ok(command);
    if (command.starts_with("megalith-pretrain")) {
      EXPECT_NE(result.out.find("--tensor-model-parallel-size"), std::string::npos) << result.out;
    }
  }
  EXPECT_TRUE(fs::exists(dir_ / "enwiki-latest-pages-articles.idx"));
}

TEST_F(PageCommands, OfMegatronTrainOnEightRanks) {
  const CommandResult result = ok(with(command("from-megatron.md", "megalith-pretrain"),
                                       kSmall + Values{{"--max-position-embeddings", "16"},
                                                       {"--micro-batch-size", "1"},
                                                       {"--global-batch-size", "4"},
                                                       {"--train-iters", "2"}}) +
                                  " --log-interval 1");
  expect_losses(result, "2");
}

TEST_F(PageCommands, OfTrainingTrainOnOneRankAndOnEight) {
  std::string script = "set -e\n";
  for (const std::string& command : doc_commands("training.md")) script += command + '\n';
  const CommandResult result = ok(with(script, kSmall + Values{{"--max-position-embeddings", "16"},
                                                               {"--micro-batch-size", "1"},
                                                               {"--global-batch-size", "4"},
                                                               {"--train-iters", "2"},
                                                               {"--log-interval", "1"}}));
  expect_losses(result, "2");
  EXPECT_NE(result.all().find("using world size: 8,"), std::string::npos) << result.all();
  EXPECT_TRUE(fs::exists(dir_ / "checkpoint/iter_0000002"));
}

TEST_F(PageCommands, OfMindFormersTrainAndPlan) {
  SKIP_WITHOUT_GLOO();
  fs::copy_file(MEGALITH_SOURCE_DIR "/share/run_distribute.sh", dir_ / "run_distribute.sh");
  write_file(dir_ / "run.yaml",
             "run_mode: train\noutput_dir: ./saved\nparallel_config:\n  data_parallel: 2\n"
             "  model_parallel: 1\n  micro_batch_num: 1\nrunner_config:\n  batch_size: 2\nlr_schedule:\n  "
             "learning_rate: 0.01\n"
             "  total_steps: 4\ntrain_dataset:\n  data_loader:\n    dataset_dir: other\n"
             "callbacks:\n  - type: MFLossMonitor\n    per_print_times: 1\n"
             "model:\n  model_config:\n    type: GPT2Config\n    seq_length: 16\n    vocab_size: 768\n"
             "    hidden_size: 16\n    num_layers: 2\n    num_heads: 2\n    compute_dtype: float32\n");
  std::string script = concat("export MASTER_PORT=", free_port(), "\n");
  for (const std::string& command : doc_commands("from-mindformers.md")) script += command + '\n';
  const CommandResult result = ok("set -e\n" + script);
  EXPECT_TRUE(fs::exists(dir_ / "saved/iter_0000004"));
  EXPECT_NE(result.out.find("start training for rank 1, device 1"), std::string::npos) << result.out;
}

TEST_F(PageCommands, OfPaddleNlpTrain) {
  SKIP_WITHOUT_GLOO();
  fs::create_directories(dir_ / "facebook");
  fs::copy(test_data("parity/goldens/generate-llama"), dir_ / "facebook/llama-7b");
  fs::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "facebook/llama-7b");
  fs::create_directory(dir_ / "data");
  for (const char* end : {".bin", ".idx"})
    fs::rename(dir_ / concat("corpus_text_document", end), dir_ / concat("data/corpus_text_document", end));
  ok(with(command("from-paddlenlp.md", "megalith-pretrain"), {{"--max_seq_length", "16"},
                                                              {"--max_steps", "4"},
                                                              {"--save_steps", "4"},
                                                              {"--eval_steps", "4"},
                                                              {"--split", "8,1,1"},
                                                              {"--logging_steps", "2"}}));
  const std::string log = read_file(dir_ / "output/llama_log/workerlog.0");
  EXPECT_NE(log.find("global_step: 4"), std::string::npos) << log;
}

TEST_F(PageCommands, OfThePlannerPlan) {
  write_file(dir_ / "cluster.yaml", "gpu: h100\nworld-size: 16\nlocal-world-size: 8\nnetwork-gbps: 200\n");
  write_file(dir_ / "config.json", kLlama8BConfig);
  for (const std::string& command : doc_commands("planner.md")) {
    if (!command.starts_with("megalith-")) continue;
    if (command.find("autoplan profile") != command.npos)
      EXPECT_NE(ok(command + " --seconds 4").err.find("wrote profile.json"), std::string::npos) << command;
    else
      EXPECT_NE(ok(command).out.find("--tensor-model-parallel-size"), std::string::npos) << command;
  }
  Json::load(dir_ / "plan.json");
  EXPECT_TRUE(fs::exists(dir_ / "plan.html"));
}

TEST_F(PageCommands, OfTheTokenizersFormatPrintIds) {
  fs::create_directories(dir_ / "path/to");
  fs::copy(dir_ / "tokenizer/tokenizer.json", dir_ / "path/to");
  EXPECT_TRUE(test::Pattern("[0-9]+( [0-9]+)*\n").matches(ok(command("formats/tokenizer.md", "echo")).out));
}

}  // namespace
}  // namespace megalith::test
