// Tests the programs with faults from outside: another process that writes the same output, an early signal,
// options far out of range, a damaged dataset, planted links, and a limit on the size of files.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/apps/program_folder.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class Faults : public ProgramFolder {
 protected:
  std::vector<std::string> hidden() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path()))
      if (entry.path().filename().string().starts_with(".")) names.push_back(entry.path().filename());
    return names;
  }

  static std::string replaced(std::string text, const std::string& what, const std::string& with) {
    return text.replace(text.find(what), what.size(), with);
  }

  const std::string kTrain = kTrainOnSet + "--train-iters 3 ";
  const std::string kPreprocess =
      "megalith-preprocess --input lines.jsonl --tokenizer-type NullTokenizer --vocab-size 9 "
      "--output-prefix ";
};

TEST_F(Faults, TheSecondWriterOfAnOutputExits75AndNamesTheFirst) {
  struct Case {
    std::string command, output, lock;
  };
  const std::vector<Case> cases = {
      {"megalith-convert model --to megalith --output out", "out", ".out.lock"},
      {"megalith-convert model --to megalith --output ./out/", "out", ".out.lock"},
      {"megalith-convert model --to hf --output out", "out", ".out.lock"},
      {"megalith-convert model --to megatron --output out", "out", ".out.lock"},
      {"megalith-convert model --to gguf --output out.gguf", "out.gguf", ".out.gguf.lock"},
      {"megalith-merge --input sets --output-prefix out", "out.bin", ".out.lock"},
      {kPreprocess + "out", "out_text_document.bin", ".out_text_document.lock"},
      {kPreprocess + "out --on-error skip --rejects out.bad", "out_text_document.bin", ".out.bad.lock"},
      {kPreprocess + "out --resume", "out_text_document.bin", ".out.resume.json.lock"},
      {"megalith-tokenizer train --input lines.jsonl --vocab-size 260 --output out", "out", ".out.lock"},
      {kTrain + "--save out", "out/iter_0000003", ".out.lock"},
      {kTuneModel + "out", "out/adapter_model.safetensors", ".out.lock"},
  };
  for (const auto& [command, output, lock] : cases) {
    // The first process is not one of our programs. It holds the kernel's lock and has written a process id
    // and a host name to the lock file, as our programs do.
    const CommandResult second = run(
        concat("flock ", lock, " sh -c 'echo $$ $(hostname) > ", lock, "; echo $$; ", command, "; exit $?'"));
    EXPECT_EQ(second.code, 75) << command << ": " << second.err;
    EXPECT_NE(second.err.find(
                  concat("another process is writing it: process ", split(second.out, '\n')[0], " on ")),
              std::string::npos)
        << command << ": " << second.err;
    EXPECT_FALSE(file_exists(dir_ / output)) << command;
    const CommandResult alone = run(command);
    EXPECT_EQ(alone.code, 0) << command << ": " << alone.err;
    EXPECT_TRUE(file_exists(dir_ / output)) << command;
    EXPECT_TRUE(hidden().empty()) << command;
    for (const auto& entry : fs::directory_iterator(dir_.path()))
      if (entry.path().filename().string().starts_with("out")) fs::remove_all(entry.path());
  }
}

TEST_F(Faults, ALinkToTheFolderHasItsLock) {
  fs::create_directory(dir_ / "out");
  fs::create_symlink("out", dir_ / "link");
  EXPECT_EQ(run("flock .out.lock " + kTrain + "--save link").code, 75);
}

TEST_F(Faults, ConversionsAtOnceLeaveOneWholeCheckpoint) {
  ASSERT_EQ(run("megalith-convert model --to megalith --output whole").code, 0);
  const std::string whole = read_file(dir_ / "whole/release/data_00000.safetensors");
  for (int turn = 0; turn < 10; ++turn) {
    const CommandResult both =
        run("megalith-convert model --to megalith --output out & first=$!\n"
            "megalith-convert model --to megalith --output out; second=$?; wait $first; echo $? $second");
    // The losing process starts either while the winner writes (75) or after it (64: the output exists).
    EXPECT_TRUE(both.out == "0 75\n" || both.out == "75 0\n" || both.out == "0 64\n" || both.out == "64 0\n")
        << both.out << both.err;
    EXPECT_TRUE(read_file(dir_ / "out/release/data_00000.safetensors") == whole);
    EXPECT_EQ(read_file(dir_ / "out/latest_checkpointed_iteration.txt"), "release");
    EXPECT_TRUE(hidden().empty());
    fs::remove_all(dir_ / "out");
  }
}

// Sends the signal while a program that trains hashes a tokenizer's file of 1 GiB. Without the signal, it
// would refuse that file (65).
TEST_F(Faults, ASignalEndsTheReadingOfATokenizer) {
  ASSERT_EQ(run("truncate -s 1G big; echo > merges").code, 0);
  const std::string tokenizer = " --tokenizer-type GPT2BPETokenizer --vocab-file big --merge-file merges";
  const std::string train =
      "megalith-pretrain --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 "
      "--max-position-embeddings 8 --micro-batch-size 2 --lr 0.01 --data-path set --train-iters 2";
  for (const std::string& command : {train, train + " --save run", kTuneModel + "run"}) {
    const CommandResult stopped =
        run(concat(command, tokenizer, " & pid=$!\n",
                   "until grep -q '^SigCgt:.*[4567cdef]...$' /proc/$pid/status || ! kill -0 $pid; do sleep "
                   "0.005; done\n",
                   "kill -TERM $pid; wait $pid"));
    EXPECT_EQ(stopped.code, 75) << command << ": " << stopped.err;
    EXPECT_NE(stopped.err.find("stopped by SIGTERM"), std::string::npos) << command << ": " << stopped.err;
    EXPECT_FALSE(file_exists(dir_ / "run")) << command;
  }
}

// Sends the signal while the program waits to read its options from a pipe.
TEST_F(Faults, ASignalBeforeTheFirstStepGives75) {
  for (const char* const signal : {"TERM", "INT", "USR1", "HUP"}) {
    for (const std::string& command : {kTrain, kTrain + "--save run", kTuneModel + "run"}) {
      const CommandResult stopped =
          run(concat("mkfifo options.yaml; ", command, " --config options.yaml & pid=$!\n",
                     "until grep -q '^SigCgt:.*[4567cdef]...$' /proc/$pid/status || ! kill -0 $pid; do sleep "
                     "0.005; done\n",
                     "kill -", signal,
                     " $pid; timeout 20 sh -c \"echo 'log-interval: 1' > options.yaml\"; wait $pid; code=$?; "
                     "rm options.yaml; exit $code"));
      EXPECT_EQ(stopped.code, 75) << signal << ": " << stopped.err;
      EXPECT_NE(stopped.err.find(concat("stopped by SIG", signal)), std::string::npos) << stopped.err;
      EXPECT_EQ(stopped.out.find("training ..."), std::string::npos) << stopped.out;
      EXPECT_TRUE(hidden().empty());
    }
  }
}

TEST_F(Faults, AConversionThatASignalEndsLeavesNothing) {
  const std::string large =
      "megalith-pretrain --num-layers 1 --hidden-size 64 --num-attention-heads 2 --seq-length 8 "
      "--max-position-embeddings 8 --micro-batch-size 1 --train-iters 1 --lr 0.01 --lr-decay-style constant "
      "--data-path set --vocab-size 200000 --split 1,0,0 --eval-iters 0 --no-save-optim --save large";
  ASSERT_EQ(run(large).code, 0);
  int ended = 0;
  for (const std::string target : {"hf", "megatron", "megalith", "gguf"}) {
    // Uses the name that the outputs below have: a GGUF file contains its name (general.name).
    ASSERT_EQ(
        run("rm -rf whole; megalith-convert large --to " + target + " --output out && mv out whole").code, 0);
    for (const auto& [signal, number] : {std::pair{"TERM", 15}, {"INT", 2}, {"HUP", 1}})
      for (const int milliseconds : {0, 5, 20}) {
        // Waits until the conversion has begun: until the output's temporary folder, or at least its lock,
        // exists.
        const CommandResult stopped =
            run(concat("megalith-convert large --to ", target, " --output out & pid=$!\n",
                       "until ls -A | grep -q '^[.]out' || ! kill -0 $pid 2>/dev/null; do :; done; sleep ",
                       format_fixed(milliseconds / 1000.0, 3), "; kill -", signal, " $pid; wait $pid"));
        EXPECT_TRUE(stopped.code == 0 || stopped.code == 128 + number) << stopped.code << stopped.err;
        if (stopped.code == 0 || file_exists(dir_ / "out")) {  // the signal may come too late
          EXPECT_EQ(run("diff -r --exclude=README.md whole out").out, "") << target << " " << signal;
        }
        EXPECT_TRUE(hidden().empty()) << target << " " << signal << ": " << hidden().front();
        ended += file_exists(dir_ / "out") ? 0 : 1;
        fs::remove_all(dir_ / "out");
      }
  }
  EXPECT_GT(ended, 0) << "no signal came in time";
}

TEST_F(Faults, NumbersBeyondAllBoundsAreUsageErrors) {
  for (const std::string& command :
       {kTrain + "--threads 2147483647", kTrain + "--attention-dropout 1", kTrain + "--hidden-dropout 1",
        std::string("megalith-generate --model model --prompt a --threads 2147483647"),
        kPreprocess + "out --workers 2147483647",
        std::string("megalith-tokenizer train --input lines.jsonl --output out --workers 2147483647")}) {
    const CommandResult refused = run(command);
    EXPECT_EQ(refused.code, 64) << command << ": " << refused.err;
    EXPECT_NE(refused.err.find("wanted"), std::string::npos) << command << ": " << refused.err;
    EXPECT_FALSE(file_exists(dir_ / "out"));
  }
}

// The dataset's ids are replaced by others after its sidecar was written, without a change of size.
TEST_F(Faults, IdsOutsideTheVocabularyAreNotTrainedOn) {
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += "{\"text\": \"1 2 3 4 5 6 7 8\"}\n";
  write_file(dir_ / "lines.jsonl", lines);
  ASSERT_EQ(run(kPreprocess + "made && " + kPreprocess + "other").code, 0);
  const std::string name = "made_text_document";
  const auto train_on = [&](const std::string& data) {
    return run(replaced(kTrain, "set --vocab-size 100000", data + " --vocab-size 9"));
  };
  EXPECT_EQ(train_on(name).code, 0);
  std::string ids = read_file(dir_ / (name + ".bin"));
  for (size_t i = 0; i < ids.size(); i += 2) ids[i] = 9;  // the smallest id outside the vocabulary
  write_file(dir_ / (name + ".bin"), ids);
  for (const std::string& data : {name, "0.5 other_text_document 0.5 " + name}) {
    const CommandResult refused = train_on(data);
    EXPECT_EQ(refused.code, 65) << refused.err;
    EXPECT_NE(refused.err.find("made_text_document: sample "), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("holds the id 9, the vocabulary has 9"), std::string::npos) << refused.err;
  }
}

// Somebody else has created links under the names that our temporary files would have.
TEST_F(Faults, PlantedLinksAreNotFollowed) {
  write_file(dir_ / "precious", "keep me");
  for (const std::string planted : {".out_text_document.lock", ".out.resume.json.lock",
                                    "out_text_document.bin.partial", "out.resume.json"}) {
    fs::create_symlink("precious", dir_ / planted);
    const CommandResult result = run(kPreprocess + "out --resume");
    EXPECT_NE(result.code, 0) << planted;
    EXPECT_NE(result.err.find(planted), std::string::npos) << planted << ": " << result.err;
    EXPECT_EQ(read_file(dir_ / "precious"), "keep me") << planted;
    EXPECT_EQ(run("rm -f out* .out*").code, 0);
  }
  for (const std::string command :
       {"convert model --to hf --output out", "convert model --to megalith --output out",
        "merge --input sets --output-prefix out",
        "tokenizer train --input lines.jsonl --vocab-size 260 --output out"}) {
    fs::create_symlink("precious", dir_ / ".out.lock");
    EXPECT_EQ(run("megalith-" + command).code, 74) << command;
    EXPECT_EQ(read_file(dir_ / "precious"), "keep me") << command;
    EXPECT_EQ(run("rm -rf out* .out*").code, 0);
  }
}

// In every program that writes, a file that exceeds the size limit counts as a failed write.
TEST_F(Faults, AFileTooLargeExits74) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += "{\"text\": \"1 2 3 4 5 6 7 8\"}\n";
  write_file(dir_ / "lines.jsonl", lines);
  for (const std::string& command :
       {std::string("megalith-convert model --to hf --output out"),
        std::string("megalith-convert model --to megatron --output out"),
        std::string("megalith-convert model --to megalith --output out"),
        std::string("megalith-convert model --to gguf --output out"),
        std::string("megalith-merge --input sets --output-prefix out"), kPreprocess + "out",
        std::string("megalith-tokenizer train --input lines.jsonl --vocab-size 260 --output out"),
        kTrain + "--save out", kTuneModel + "out"}) {
    const CommandResult full = run("ulimit -f 4; " + command);
    EXPECT_EQ(full.code, 74) << command << ": " << full.err;
    EXPECT_NE(full.err.find("File too large"), std::string::npos) << command << ": " << full.err;
    EXPECT_TRUE(hidden().empty()) << command << ": " << hidden().front();
    fs::remove_all(dir_ / "out");
  }
}

}  // namespace
}  // namespace megalith::test
