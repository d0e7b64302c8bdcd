// Tests every program with a stdout that cannot be written, has no reader, or is closed at the start.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/apps/program_folder.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// A ProgramFolder, with a list of commands that print.
class StandardStreams : public ProgramFolder {
 protected:
  StandardStreams() {
    write_file(dir_ / "line", "Hello\n");
    write_file(dir_ / "ids", "1 2 3\n");
    write_file(dir_ / "run.jsonl", "{\"type\": \"start\"}\n");
  }

  const std::vector<std::string> kPrinting = {
      "megalith --help",
      "megalith --version",
      "megalith --help-bash-completion",
      "megalith --help-man",
      "megalith help data",
      "megalith-autoplan --help",
      "megalith-convert --help",
      "megalith-data --help",
      "megalith-doctor --json",
      "megalith-eval --help",
      "megalith-eval --model model --tasks lines.jsonl",
      "megalith-finetune --help",
      "megalith-generate --help",
      "megalith-merge --help",
      "megalith-preprocess --help-markdown",
      "megalith-pretrain --help-man",
      "megalith-rank-table --help",
      "megalith-rank-table --device_num '[0,2)' --server_ip a",
      "megalith-report --help",
      "megalith-report run.jsonl",
      "megalith-tokenizer --version",
      "megalith-tokenizer encode --tokenizer-model model --input line",
      "megalith-tokenizer decode --tokenizer-model model --input ids",
      "megalith-top --help",
      "megalith-top run.jsonl",
      "megalith-data cat set",
      "megalith-data inspect set",
      "megalith-data stats --json set",
      "megalith-data verify set",
      "megalith-convert inspect model",
      "megalith-convert model --to gguf --dry-run",
      "megalith-generate --model model --prompt a --max-new-tokens 2 --temperature 0",
      "megalith-generate --model model --prompt a --max-new-tokens 2 --temperature 0 --json",
      "megalith-pretrain --dump-sample-order --data-path set --seq-length 8 --samples 8 0 0 --split 1,0,0",
  };
};

TEST_F(StandardStreams, AreWrittenOrSaidToBeLost) {
  for (const std::string& command : kPrinting) {
    const CommandResult good = run(command);
    EXPECT_EQ(good.code, 0) << command << ": " << good.err;
    EXPECT_FALSE(good.out.empty()) << command;
    const CommandResult full = run(command + " >/dev/full");
    EXPECT_EQ(full.code, 74) << command << ": " << full.err;
    EXPECT_NE(full.err.find("stdout: cannot write: No space left on device"), std::string::npos)
        << command << ": " << full.err;
    const CommandResult closed = run(command + " >&-");
    EXPECT_EQ(closed.code, 74) << command << ": " << closed.err;
    EXPECT_NE(closed.err.find("stdout: cannot write: Bad file descriptor"), std::string::npos)
        << command << ": " << closed.err;
  }
}

// Writing fails after several buffers were written, but the last flush succeeds. The failure must still be
// reported.
TEST_F(StandardStreams, AreCheckedFromTheFirstByteOn) {
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "1 2 3\n";
  write_file(dir_ / "ids", many);
  const CommandResult cut =
      run("ulimit -f 1; megalith-tokenizer decode --tokenizer-model model --input ids > out");
  EXPECT_EQ(cut.code, 74) << cut.err;
  EXPECT_NE(cut.err.find("stdout: cannot write: File too large"), std::string::npos) << cut.err;
}

// If stdout fails while the answer to an input line is written, the error must not blame that line.
TEST_F(StandardStreams, AreNotTakenForTheirInput) {
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "1 2 3\n";  // more than a pipe holds
  write_file(dir_ / "many", many);
  for (const std::string command : {"encode", "decode"}) {
    const std::string words = "megalith-tokenizer " + command + " --tokenizer-model model --input many";
    const CommandResult gone =
        run("{ " + words + "; echo $? > code; } | head -c 1 > first; exit $(cat code)");
    EXPECT_EQ(gone.code, 0) << command << ": " << gone.err;
    EXPECT_EQ(gone.err, "") << command;
    EXPECT_EQ(file_size(dir_ / "first"), 1U) << command;
    const CommandResult full = run(words + " > /dev/full");
    EXPECT_EQ(full.code, 74) << command << ": " << full.err;
    EXPECT_EQ(full.err, "tokenizer: error: stdout: cannot write: No space left on device\n") << command;
  }
}

TEST_F(StandardStreams, EndQuietlyWhenTheReaderHasGone) {
  for (const std::string& command : kPrinting) {
    // The reader of stdout exits before it reads a byte.
    const CommandResult gone =
        run("mkfifo p; (exec 8<>p 9>p; exec 8<&-; exec " + command + " >&9 9>&-); code=$?; rm p; exit $code");
    EXPECT_EQ(gone.code, 0) << command << ": " << gone.err;
    EXPECT_EQ(gone.err.find("stdout"), std::string::npos) << command << ": " << gone.err;
    EXPECT_EQ(gone.err.find("error"), std::string::npos) << command << ": " << gone.err;
  }
}

// With closed standard descriptors, a program must write the same files as with open ones.
TEST_F(StandardStreams, ThatAreClosedGiveTheirNumbersToNoFile) {
  const std::string train = kTrainOnSet + "--train-iters 3 --log-interval 1 ";
  struct Case {
    std::string command;
    std::vector<std::string> outputs;
  };
  const std::vector<Case> cases = {
      {"megalith-convert model --to gguf --output OUT/m.gguf", {"m.gguf"}},
      {"megalith-convert model --to hf --output OUT/hf", {"hf/model.safetensors", "hf/config.json"}},
      {"megalith-convert model --to megatron --output OUT/meg",
       {"meg/release/mp_rank_00/model_optim_rng.pt", "meg/latest_checkpointed_iteration.txt"}},
      {"megalith-convert model --to megalith --output OUT/own", {"own/release/data_00000.safetensors"}},
      {"megalith-merge --input sets --output-prefix OUT/all", {"all.bin", "all.idx"}},
      {"megalith-preprocess --input lines.jsonl --output-prefix OUT/made --tokenizer-type NullTokenizer "
       "--vocab-size 9",
       {"made_text_document.bin", "made_text_document.idx"}},
      {"megalith-tokenizer train --input lines.jsonl --vocab-size 260 --output OUT/tok",
       {"tok/tokenizer.json", "tok/merges.txt"}},
      {train + "--save OUT/run", {"run/iter_0000003/data_00000.safetensors"}},
      {kTuneModel + "OUT/run", {"run/adapter_model.safetensors", "run/iter_0000002/data_00000.safetensors"}},
  };
  const auto at = [](std::string text, const std::string& folder) {
    return text.replace(text.find("OUT"), 3, folder);
  };
  for (const auto& [command, outputs] : cases) {
    fs::remove_all(dir_ / "open");
    fs::create_directory(dir_ / "open");
    const CommandResult open = run(at(command, "open"));
    ASSERT_EQ(open.code, 0) << command << ": " << open.err;
    for (const std::string closed : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"}) {
      fs::remove_all(dir_ / "closed");
      fs::create_directory(dir_ / "closed");
      EXPECT_EQ(run(at(command, "closed") + " " + closed).code, 0) << command << " " << closed;
      for (const std::string& output : outputs)
        EXPECT_TRUE(read_file(dir_ / ("open/" + output)) == read_file(dir_ / ("closed/" + output)))
            << command << " " << closed << ": " << output;
    }
  }
}

TEST_F(StandardStreams, ClosedStdinIsNoEmptyInput) {
  EXPECT_EQ(run("megalith-tokenizer encode --tokenizer-model model </dev/null").code, 0);
  EXPECT_EQ(run("megalith-tokenizer encode --tokenizer-model model <&-").code, 74);
}

// If stdout is closed, the --log-json file must not get its descriptor: each line of the log would then be
// written into that file.
TEST_F(StandardStreams, ThatAreClosedMixNoLogIntoTheFigures) {
  const CommandResult result =
      run(kTrainOnSet + "--train-iters 3 --log-interval 1 --log-json figures <&- >&- 2>&-");
  EXPECT_EQ(result.code, 0);
  for (const std::string& line : split(trim(read_file(dir_ / "figures")), '\n'))
    EXPECT_EQ(line.find("{\"type\": "), 0u) << line;
}

}  // namespace
}  // namespace megalith::test
