// Gives every program files and folders whose names have control characters. No terminal may obey them, and
// no name may look like a line of its own.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace megalith::test
