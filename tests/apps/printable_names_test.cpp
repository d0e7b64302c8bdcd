// Gives every program files and folders whose names have control characters. No terminal may obey them, and
// no name may look like a line of its own.
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/apps/program_folder.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// A ProgramFolder whose contents have the shell's $N in their names.
class PrintableNames : public ProgramFolder {
 protected:
  PrintableNames() {
    for (const char* end : {".bin", ".idx"}) fs::rename(dir_ / "set" + end, dir_ / kName + end);
    for (const char* name : {"model", "sets", "records", "lines.jsonl"})
      fs::rename(dir_ / name, dir_ / kName + "-" + name);
    // Damaged files whose names a program learns only from their folder.
    for (const char* folder : {"texts", "merged", "weights"}) fs::create_directory(dir_ / folder);
    write_file(dir_ / "texts/" + kName + ".jsonl", "{\"text\": \n");
    for (const char* end : {".bin", ".idx"}) write_file(dir_ / "merged/" + kName + end, "no dataset");
    write_file(dir_ / "weights/" + kName + ".safetensors", "");
  }
  CommandResult run_named(const std::string& command) const {
    return run("N=$(printf 'n\\033[31m\\nm\\tk')\n" + command);
  }
  const std::string kName = "n\x1b[31m\nm\tk";
};

TEST_F(PrintableNames, ReachNoTerminalAsTheyAre) {
  const std::string train = std::string(kTrainOnSet).replace(kTrainOnSet.find(" set "), 5, " \"$N\" ");
  for (const std::string& command :
       {std::string("megalith \"$N\""),
        std::string("megalith-autoplan --hf \"$N-none\" --world-size 2"),
        std::string(
            "megalith-autoplan --hf \"$N-model\" --world-size 1 --data-path \"$N\" --global-batch-size 1"),
        std::string("megalith-autoplan --config \"$N\""),
        std::string("megalith-convert inspect \"$N-model\""),
        std::string("megalith-convert inspect \"$N-none\""),
        std::string("megalith-convert \"$N-model\" --to gguf --dry-run --output \"$N.gguf\""),
        std::string("megalith-convert \"$N-model\" --to megatron --output \"$N-out\""),
        std::string("megalith-data inspect \"$N\""),
        std::string("megalith-data stats \"$N\""),
        std::string("megalith-data verify \"$N\" \"$N-none\""),
        std::string("megalith-eval --model \"$N-model\" --tasks \"$N-lines.jsonl\""),
        std::string("megalith-eval --model \"$N-model\" --tasks \"piqa=$N-lines.jsonl\""),
        std::string("megalith-eval --model \"$N-none\" --tasks \"$N-none\""),
        std::string("megalith-finetune --model \"$N-model\" --data \"$N-records\" --lora --max-steps 1 "
                    "--micro-batch-size 1 --lr 0.01 --threads 1 --output-dir \"$N-tuned\""),
        std::string("megalith-finetune --model \"$N-model\" --data \"$N-none\" --output-dir \"$N-tuned\""),
        std::string("megalith-generate --model \"$N-none\" --prompt a"),
        std::string("megalith-merge --input \"$N-sets\" --output-prefix \"$N-merged\""),
        std::string("megalith-merge --input \"$N-none\" --output-prefix \"$N-merged\""),
        std::string("megalith-preprocess --input \"$N-lines.jsonl\" --output-prefix \"$N-new\" "
                    "--tokenizer-model \"$N-model\" --tokenizer-type HuggingFaceTokenizer"),
        std::string("megalith-preprocess --input \"$N-none\" --output-prefix \"$N-new\""),
        train + "--train-iters 1 --save \"$N-saved\"",
        train + "--train-iters 2 --load \"$N-saved\" --save \"$N-saved\"",
        train + "--train-iters 1 --dry-run",
        std::string("megalith-pretrain --data-path \"$N-none\" --load \"$N-none\""),
        std::string("megalith-pretrain --dump-sample-order --data-path \"$N\" --seq-length 8 --samples 8 0 0 "
                    "--split 1,0,0"),
        std::string("megalith-rank-table merge \"$N\""),
        std::string("megalith-convert weights --to hf --output out"),
        std::string("megalith-merge --input merged --output-prefix out"),
        std::string("megalith-preprocess --input texts --output-prefix out --tokenizer-type NullTokenizer "
                    "--vocab-size 9"),
        std::string("megalith-preprocess --input 'texts/*' --output-prefix out --tokenizer-type "
                    "NullTokenizer --vocab-size 9"),
        std::string("megalith-tokenizer encode --tokenizer-model \"$N-none\" --input \"$N\"")}) {
    const CommandResult result = run_named(command);
    EXPECT_EQ(result.out.find('\x1b'), std::string::npos) << command << '\n' << result.out;
    EXPECT_EQ(result.err.find('\x1b'), std::string::npos) << command << '\n' << result.err;
    for (const char* raw : {"[31m\nm", "m\tk"}) {
      EXPECT_EQ(result.out.find(raw), std::string::npos) << command << '\n' << result.out;
      EXPECT_EQ(result.err.find(raw), std::string::npos) << command << '\n' << result.err;
    }
    EXPECT_TRUE(result.code == 0 || (result.code >= 64 && result.code <= 66))
        << command << ": " << result.code << '\n'
        << result.err;
  }
}

/// Names that stand only in what a file contains: they are no words of the command line.
class ForgedLines : public ProgramFolder {
 protected:
  /// Runs a command. No line of what it shows may be the name's second line, and no name brings a tab.
  void expect_none(const std::string& command) const {
    const CommandResult result = run(command);
    for (const std::string& shown : {result.out, result.err}) {
      EXPECT_FALSE(shown.starts_with("FORGED")) << command << '\n' << shown;
      for (const char* raw : {"\nFORGED", "\t"})
        EXPECT_EQ(shown.find(raw), std::string::npos) << command << '\n' << shown;
    }
    EXPECT_TRUE(result.code == 0 || (result.code >= 64 && result.code <= 66))
        << command << ": " << result.code << '\n'
        << result.err;
  }
  static constexpr const char* kEscaped = "n\\nFORGED: error: all is lost\\tk";  // in JSON and YAML
};

TEST_F(ForgedLines, AreNotMadeOfSettings) {
  const std::string train = std::string(kTrainOnSet).erase(kTrainOnSet.find("--data-path set "), 16);
  for (const std::string option :
       {"data-path", "train-data-path", "valid-data-path", "tokenizer-model", "vocab-file", "load", "save",
        "data-cache-path", "log-json", "log-file", "tensorboard-dir", "report", "device", "hidden-act",
        "hostfile", "gpus", "split", "no-such-option"}) {
    const std::string data = option.ends_with("data-path") ? "" : "data-path: [set]\n";
    write_file(dir_ / "run.yaml", concat(data, option, ": \"", kEscaped, "\"\n"));
    expect_none(train + "--train-iters 1 --config run.yaml");
  }
  std::map<std::string, std::string> tuning = {{"model", "model"}, {"data", "records"}, {"output-dir", "t"}};
  for (auto& [option, value] : tuning) {
    const std::string right = std::exchange(value, kEscaped);
    std::string settings;
    for (const auto& [name, given] : tuning) settings += concat(name, ": \"", given, "\"\n");
    write_file(dir_ / "tune.yaml", settings);
    expect_none("megalith-finetune --lora --max-steps 1 --micro-batch-size 1 --lr 0.01 --config tune.yaml");
    value = right;
  }
}

TEST_F(ForgedLines, AreNotMadeOfWhatAModelSays) {
  const std::string name = "n\nFORGED: error: all is lost\tk";
  fs::remove(dir_ / "model/model.safetensors");
  write_file(dir_ / "model/model.safetensors.index.json",
             concat(R"({"weight_map": {"a": ")", kEscaped, ".safetensors\"}}"));
  write_file(dir_ / ("model/" + name + ".safetensors"), "");
  const fs::path kept = dir_ / "hub/models--o--m";
  fs::create_directories(kept / "refs");
  fs::create_directories(kept / "snapshots" / name);
  write_file(kept / "refs/main", name);
  write_file(kept / "snapshots" / name / "config.json", "{\"model_type\": 3}");
  for (const std::string model : {"model", "o/m"})
    for (const std::string command : {"megalith-convert inspect ", "megalith-convert --to hf --output out ",
                                      "megalith-generate --prompt a --model ",
                                      "megalith-autoplan --world-size 2 --global-batch-size 2 --hf "})
      expect_none("HF_HUB_CACHE=$PWD/hub " + command + model);
}

}  // namespace
}  // namespace megalith::test
