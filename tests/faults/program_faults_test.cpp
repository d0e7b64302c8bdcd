// Every program that writes is killed at its calls to the file system, or such calls fail or are cut short
// (inject.cpp). Every output must then be complete or absent, errors must give their exit codes, and running
// the same command again must finish the work and leave no temporary files. Each test run tries some calls of
// each program; the large tests try all of them and print how many (docs/reliability.md).
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/apps/program_folder.h"
#include "tests/support/compiler.h"
#include "tests/support/large.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

struct Writer {
  std::string name, command;
  /// The outputs. After a fault, each must be complete or absent. Outputs of one dataset are listed in the
  /// order in which they appear.
  std::vector<std::string> outputs;
  bool again = true;  // whether the command may be repeated if its output exists
};

const std::vector<Writer>& writers() {
  static const std::string kPreprocess =
      "megalith-preprocess --input lines.jsonl bad.jsonl --on-error skip --rejects rejects --workers 1 "
      "--tokenizer-type NullTokenizer --vocab-size 9 --output-prefix out";
  static const std::string kTune =
      "megalith-finetune --model model --max-steps 2 --micro-batch-size 1 --lr 0.01 --threads 1 "
      "--output-dir out ";
  static const std::vector<std::string> kDataset = {"out_text_document.idx", "out_text_document.bin"};
  static const std::vector<Writer> kAll = {
      {"preprocess", kPreprocess, kDataset},
      {"preprocess_resume", kPreprocess + " --resume", kDataset},
      {"merge", "megalith-merge --input sets set --output-prefix out", {"out.idx", "out.bin"}},
      {"convert_hf", "megalith-convert model --to hf --output out", {"out"}, false},
      {"convert_megatron", "megalith-convert model --to megatron --output out", {"out"}, false},
      {"convert_megalith", "megalith-convert model --to megalith --output out", {"out"}, false},
      {"convert_gguf", "megalith-convert model --to gguf --output out.gguf", {"out.gguf"}, false},
      {"tokenizer", "megalith-tokenizer train --input lines.jsonl --vocab-size 260 --output out", {"out"}},
      {"pretrain",
       kTrainOnSet + "--train-iters 2 --save out --load out",
       {"out/latest_checkpointed_iteration.txt", "out/iter_0000002"}},
      {"pretrain_torch",
       kTrainOnSet + "--train-iters 2 --save out --load out --ckpt-format torch --data-cache-path out_cache",
       {"out/latest_checkpointed_iteration.txt", "out/iter_0000002"}},
      {"pretrain_pth",
       kTrainOnSet + "--train-iters 2 --save out --load out --ckpt-format pth",
       {"out/model_000000.pth", "out/optimizer_000000.pth"}},
      {"finetune", kTuneModel + "out", {"out/adapter_config.json", "out/adapter_model.safetensors"}},
      {"finetune_answers",
       kTuneModel + "out --merge-weights --eval-data records/train.json --do-generation --max-new-tokens 2",
       {"out/predict_results.json", "out/generated_predictions.jsonl", "out/merged",
        "out/adapter_config.json", "out/adapter_model.safetensors"}},
      {"finetune_qlora",
       kTuneModel + "out --qlora",
       {"out/adapter_config.json", "out/adapter_model.safetensors"}},
      {"finetune_prefix",
       kTune + "--data records --prefix-tuning --num-prefix-tokens 2",
       {"out/adapter_config.json", "out/adapter_model.safetensors"}},
      {"finetune_dpo",
       kTune + "--data pairs --dpo --lora",
       {"out/adapter_config.json", "out/adapter_model.safetensors"}},
      {"finetune_whole", kTune + "--data records", {"out/hf"}},
      {"autoplan",
       "megalith-autoplan --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
       "--max-position-embeddings 32 --vocab-size 128 --gpu H100 --world-size 8 --global-batch-size 8 --top "
       "2 "
       "--html out.html",
       {"out.html"}},
  };
  return kAll;
}

class ProgramFaults : public ProgramFolder, public testing::WithParamInterface<size_t> {
 protected:
  ProgramFaults() {
    std::string lines;
    for (int i = 0; i < 400; ++i) lines += "{\"text\": \"1 2 3 4 5 6 7 8\"}\n";
    write_file(dir_ / "lines.jsonl", lines);
    write_file(dir_ / "bad.jsonl", "{\"text\": \"1\"}\nno json\n");
    fs::create_directory(dir_ / "pairs");
    write_file(dir_ / "pairs/train.json", R"({"prompt": "a", "chosen": " b", "rejected": " c"})");
  }

  CommandResult run_with(const std::string& fault) const {
    return run("export LD_PRELOAD=" MEGALITH_BINARY_DIR "/bin/libmegalith_inject.so MEGALITH_FAULT=" + fault +
               " MEGALITH_FAULT_COUNT=$PWD/calls\nexec " + writer_.command);
  }

  /// The contents of an output: a file's bytes, or the names and bytes of a folder's files. Model cards are
  /// skipped since they contain the time.
  std::string contents(const std::string& output) const {
    const fs::path path = dir_.path() / output;
    if (!fs::exists(path)) return {};
    if (!fs::is_directory(path)) return read_file(path);
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file() && entry.path().filename() != "README.md" && !is_timed(entry.path()))
        files[entry.path().lexically_relative(path)] = read_file(entry.path());
    std::string all;
    for (const auto& [name, bytes] : files) all += concat(name, "\n", bytes.size(), "\n", bytes);
    return all;
  }
  static bool is_timed(const fs::path& file) { return file.filename() == "losses.json"; }

  std::vector<std::string> all_contents() const {
    std::vector<std::string> all;
    for (const std::string& output : writer_.outputs) all.push_back(contents(output));
    return all;
  }

  /// Expects that the outputs are complete or absent. If the first exists, all others must exist, too.
  void expect_whole_or_absent(const std::vector<std::string>& whole) const {
    const std::vector<std::string> found = all_contents();
    const bool begun = !found[0].empty();
    for (size_t i = 0; i < found.size(); ++i) {
      if (begun || (writer_.outputs.size() == 1 && !found[i].empty())) {
        EXPECT_TRUE(found[i] == whole[i]) << writer_.outputs[i];
      }
    }
  }

  void expect_nothing_hidden() const {
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path()))
      EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
  }

  void clean() const { EXPECT_EQ(run("rm -rf out* .out* rejects .rejects* calls").code, 0); }

  /// Runs the command with this fault, checks the outputs, and runs it again without the fault.
  void try_fault(const std::string& mode, int at, const std::vector<std::string>& whole) {
    SCOPED_TRACE(concat(writer_.command, " with ", mode, " at call ", at));
    clean();
    const CommandResult hit = run_with(concat(mode, ":", at));
    if (mode == "kill") {
      EXPECT_TRUE(hit.code == 137 || hit.code == 0) << hit.code << hit.err;
    } else if (mode == "short") {
      EXPECT_EQ(hit.code, 0) << hit.err;
    } else {
      EXPECT_TRUE(hit.code == 74 || hit.code == 0) << hit.code << hit.err;
    }
    expect_whole_or_absent(whole);
    if (hit.code == 0) {
      EXPECT_TRUE(all_contents() == whole);
    }
    if (!writer_.again && fs::exists(dir_ / writer_.outputs[0])) return;
    const CommandResult again = run(writer_.command);
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_TRUE(all_contents() == whole);
    expect_nothing_hidden();
  }

  const Writer& writer_ = writers()[GetParam()];
};

TEST_P(ProgramFaults, LeaveWholeOutputsOrNoneAndTheSameCommandEndsTheWork) {
  if (kSanitizer) GTEST_SKIP() << "sanitizers must be loaded before inject.cpp's library";
  ASSERT_EQ(run_with("kill:0").code, 0);
  const std::vector<std::string> whole = all_contents();
  for (const std::string& output : whole) ASSERT_FALSE(output.empty());
  const auto calls = parse_int(trim(read_file(dir_ / "calls")));
  ASSERT_TRUE(calls && *calls > 5);
  const int number = static_cast<int>(*calls), steps = large_tests_wanted() ? number : 5;
  int tried = 0;
  for (const std::string& mode :
       {std::string("kill"), std::to_string(ENOSPC), std::to_string(EIO), std::string("short")})
    for (int step = 0; step < steps && !HasFailure(); ++step, ++tried)
      try_fault(mode, steps == number ? step + 1 : 1 + (number - 1) * step / (steps - 1), whole);
  std::cout << writer_.name << ": " << tried << " faults at " << number << " calls\n";
}

INSTANTIATE_TEST_SUITE_P(Writers, ProgramFaults, testing::Range(size_t{0}, writers().size()),
                         [](const auto& writer) { return writers()[writer.param].name; });

}  // namespace
}  // namespace megalith::test
