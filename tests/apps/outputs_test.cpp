// Tests every program with an output name that belongs to something other than a file, to an input, or to
// another output.
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/lock_file.h"
#include "tests/apps/program_folder.h"
#include "tests/support/compiler.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class Outputs : public ProgramFolder {
 protected:
  Outputs() { write_file(dir_ / "bad.jsonl", "{\"text\": \"1 2\"}\nno json\n"); }

  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path()))
      if (entry.is_regular_file()) contents[entry.path().string()] = read_file(entry.path());
    return contents;
  }

  const std::string kTrain = kTrainOnSet + "--train-iters 2 ";
  const std::string kPreprocess =
      "megalith-preprocess --input bad.jsonl --tokenizer-type NullTokenizer --vocab-size 9 --on-error skip ";
  const std::string kTune = kTuneModel + "tuned ";
  const std::string kTuneAnother = "megalith-finetune --data records --max-steps 2 --output-dir new ";
  const std::string kPlan =
      "megalith-autoplan --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
      "--max-position-embeddings 64 --vocab-size 1000 --micro-batch-size 1 --global-batch-size 8 "
      "--world-size 8 "
      "--gpu H100-SXM-80GB ";
  /// Commands to which the name of an output must be added. These outputs are written sequentially.
  const std::vector<std::string> kStreams = {kPreprocess + "--output-prefix out --rejects ",
                                             kTrain + "--log-json ", kTrain + "--report "};
};

TEST_F(Outputs, ThatAreDevicesAreWrittenToAndStay) {
  if (::mknod((dir_ / "device").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0)
    GTEST_SKIP() << "this user makes no devices";  // so the real devices in /dev are never at risk
  for (const std::string& command : kStreams) {
    const CommandResult done = run(command + "device");
    EXPECT_EQ(done.code, 0) << command << ": " << done.err;
    EXPECT_EQ(fs::status(dir_ / "device").type(), fs::file_type::character) << command;
    EXPECT_EQ(run("rm -rf out*").code, 0);
  }
}

TEST_F(Outputs, ThatAreFifosAreWrittenToWhenSomebodyReads) {
  for (const std::string& command : kStreams) {
    const CommandResult read =
        run("mkfifo fifo; cat fifo > got & exec 9<>fifo; " + command +
            "fifo; code=$?; exec 9>&-; wait; test -p fifo || code=99; rm fifo; exit $code");
    EXPECT_EQ(read.code, 0) << command << ": " << read.err;
    EXPECT_GT(file_size(dir_ / "got"), 6U) << command;
    const CommandResult alone = run("rm -rf out*; mkfifo fifo; timeout 20 " + command +
                                    "fifo; code=$?; test -p fifo || code=99; rm fifo; exit $code");
    EXPECT_EQ(alone.code, 74) << command << ": " << alone.err;
    EXPECT_NE(alone.err.find("fifo: no process reads from it"), std::string::npos)
        << command << ": " << alone.err;
    EXPECT_EQ(run("rm -rf out*").code, 0);
  }
}

// A run continues if its log cannot be written. It says at once that the log has ended, and its exit code
// shows it.
TEST_F(Outputs, OfTheLogThatCannotBeWrittenAreTold) {
  if (kClang)
    GTEST_SKIP() << "libomp ends a process that may write only small files: it keeps one of its own";
  const std::string train = kTrainOnSet + "--train-iters 10 --log-interval 1 ";
  for (const auto& [start, option, file] :
       {std::tuple<std::string, std::string, std::string>{"ulimit -f 1; ", "--log-file cut", "cut"},
        {"ulimit -f 1; ", "--nproc 2 --log-dir logs", "logs/workerlog.0"},
        {"", "--log-file /dev/full", "/dev/full"}}) {
    const CommandResult cut = run(start + train + option + " > /dev/null");
    const std::string what =
        file + ": cannot write: " + (start.empty() ? "No space left on device" : "File too large");
    EXPECT_EQ(cut.code, 74) << option << ": " << cut.err;
    const size_t at = cut.err.find("warning: " + what);
    EXPECT_NE(at, std::string::npos) << option << ": " << cut.err;
    EXPECT_EQ(cut.err.find("warning: " + what, at + 1), std::string::npos) << option << ": " << cut.err;
    EXPECT_NE(cut.err.find("pretrain: error: " + what), std::string::npos) << option << ": " << cut.err;
    EXPECT_EQ(run("rm -rf cut logs").code, 0);
  }
}

// If an output is a FIFO without a reader, the run ends before its first step; waiting for a reader would
// hang it.
TEST_F(Outputs, OfTrainingThatAreFifosWantAReaderFromTheStart) {
  for (const std::string option : {"--log-file", "--report", "--trace", "--log-json"}) {
    const std::string command = kTrain + "--save saved " + option + " fifo";
    const CommandResult alone = run("mkfifo fifo; timeout 20 " + command);
    EXPECT_EQ(alone.code, 74) << option << ": " << alone.err;
    EXPECT_NE(alone.err.find("fifo: no process reads from it"), std::string::npos)
        << option << ": " << alone.err;
    EXPECT_FALSE(file_exists(dir_ / "saved/latest_checkpointed_iteration.txt")) << option;
    const CommandResult read =
        run("cat fifo > got & exec 9<>fifo; " + command + "; code=$?; exec 9>&-; wait; exit $code");
    EXPECT_EQ(read.code, 0) << option << ": " << read.err;
    EXPECT_GT(file_size(dir_ / "got"), 100U) << option;
    EXPECT_FALSE(file_exists(dir_ / "fifo.jsonl")) << option;  // a report to a FIFO writes no file of figures
    EXPECT_EQ(run("rm -rf fifo saved got").code, 0);
  }
}

// A second run with the same output must be refused: the figures would mix, and one report would show both
// runs.
TEST_F(Outputs, OfTrainingAreOneRunsAlone) {
  for (const std::string held : {"figures", "page.jsonl", "page", "trace"}) {
    const LockFile lock(dir_ / held);
    const CommandResult second = run(kTrain + (held == "figures" ? "--log-json figures"
                                               : held == "trace" ? "--trace trace"
                                                                 : "--report page"));
    EXPECT_EQ(second.code, 75) << held << ": " << second.err;
    EXPECT_NE(second.err.find(held + ": another process is writing it: process " +
                              std::to_string(::getpid()) + " on "),
              std::string::npos)
        << second.err;
    for (const char* const name : {"figures", "page.jsonl", "page", "trace"})
      EXPECT_FALSE(file_exists(dir_ / name)) << held << ' ' << name;
  }
  const LockFile lock(dir_ / "figures");
  const CommandResult linked = run("ln -s figures link; " + kTrain + "--log-json link");
  EXPECT_EQ(linked.code, 75) << linked.err;
  EXPECT_FALSE(file_exists(dir_ / "figures"));
  EXPECT_EQ(run(kTrain + "--log-json others --report page --trace trace").code, 0);
}

// A report's figures must not be appended to a user's text file: no report could be drawn from the result.
TEST_F(Outputs, OfAReportAreAddedToFiguresAlone) {
  write_file(dir_ / "page.jsonl", "hello\n");
  const CommandResult refused = run(kTrain + "--save saved --report page");
  EXPECT_EQ(refused.code, 65) << refused.err;
  EXPECT_NE(refused.err.find("page.jsonl:1"), std::string::npos) << refused.err;
  EXPECT_EQ(read_file(dir_ / "page.jsonl"), "hello\n");
  EXPECT_TRUE(fs::is_empty(dir_ / "saved"));  // no training step ran
  EXPECT_EQ(run("rm page.jsonl; " + kTrain + "--report page").code, 0);
  EXPECT_EQ(run(kTrain + "--report page").code, 0);
}

TEST_F(Outputs, ThatAreNoFilesAreNotReplaced) {
  struct Case {
    std::string command, output;
  };
  for (const auto& [command, output] :
       {Case{"megalith-convert model --to gguf --output out.gguf", "out.gguf"},
        {"megalith-convert model --to hf --output out", "out"},
        {"megalith-convert model --to megatron --output out", "out"},
        {"megalith-convert model --to megalith --output out", "out"},
        {"megalith-merge --input sets --output-prefix out", "out.bin"},
        {"megalith-merge --input sets --output-prefix out", "out.idx"},
        {kPreprocess + "--output-prefix out", "out_text_document.bin"},
        {kPreprocess + "--output-prefix out --resume", "out_text_document.idx"},
        {kPreprocess + "--output-prefix out --resume --rejects rejects", "rejects"},
        {"megalith-tokenizer train --input lines.jsonl --vocab-size 260 --output out", "out"},
        {kTrain + "--save out", "out"}}) {
    const CommandResult refused = run("mkfifo " + output + "; timeout 20 " + command);
    EXPECT_TRUE(refused.code == 64 || refused.code == 74) << command << ": " << refused.code << refused.err;
    EXPECT_NE(refused.err.find(output), std::string::npos) << command << ": " << refused.err;
    EXPECT_TRUE(fs::is_fifo(dir_ / output)) << command;
    EXPECT_EQ(run("rm -rf out* rejects .out*").code, 0);
  }
}

// Such outputs are refused before anything is opened: no file has changed, and none is new.
TEST_F(Outputs, ThatAreInputsAreRefused) {
  write_file(dir_ / "table.json",
             R"({"server_list": [{"server_id": "127.0.0.1", "device": [{"device_id": "0", "rank_id": "0"}]}],
                 "status": "completed"})");
  ASSERT_EQ(run("ln -s bad.jsonl link; ln bad.jsonl hard; ln -s . here; ln -s set.bin bin;"
                "mv bad.jsonl out_text_document.bin; ln -s out_text_document.bin bad.jsonl;"
                "printf 'a 1\n' > coefficients; echo 'seed: 7' > run.yaml;"
                "echo 'localhost slots=1' > hosts;"
                "echo 'gpu: h100' > cluster.yaml; cp model/config.json config.json;"
                "cp model/tokenizer.json words.jsonl;"
                "echo 'log-interval: 1' > conf.yaml; mkdir conf; echo 'workers: 1' > conf/work.yaml;"
                "echo 'to: hf' > conf/to.yaml; printf '{}' > conf/merged.idx")
                .code,
            0);
  const auto before = files();
  const std::string tokenizer =
      "megalith-preprocess --input bad.jsonl --on-error skip --output-prefix new --tokenizer-model model ";
  for (const std::string& command :
       {kPreprocess + "--output-prefix new --rejects bad.jsonl",
        kPreprocess + "--output-prefix new --rejects here/link",
        kPreprocess + "--output-prefix new --rejects hard",
        kPreprocess + "--output-prefix out",
        kPreprocess + "--output-prefix here/out",
        kPreprocess + "--output-prefix new --rejects new_text_document.bin",
        kPreprocess + "--output-prefix new --rejects here/new_text_document.json",
        kPreprocess + "--output-prefix new --resume --rejects new.resume.json",
        kPreprocess + "--output-prefix new --resume --rejects new.resume.json.partial",
        kPreprocess + "--output-prefix new --resume --rejects new.hashes.partial",
        kPreprocess + "--output-prefix new --resume --rejects new_text_document.bin.partial",
        kPreprocess + "--output-prefix new --resume --rejects here/new_text_document.lengths.partial",
        tokenizer + "--rejects model/tokenizer.json",
        tokenizer + "--rejects here/model/config.json",
        kPreprocess + "--config conf.yaml --output-prefix new --rejects conf.yaml",
        kTrain + "--config conf.yaml --log-json here/conf.yaml",
        kTrain + "--config conf.yaml --report conf.yaml",
        kTune + "--config conf.yaml --log-file conf.yaml",
        std::string("megalith-merge --config conf/merged.idx --input sets --output-prefix conf/merged"),
        std::string("megalith-convert model --config conf/to.yaml --output conf"),
        std::string("megalith-tokenizer train --config conf/work.yaml --input lines.jsonl --vocab-size 260 "
                    "--output conf"),
        kTrain + "--tokenizer-type HuggingFaceTokenizer --tokenizer-model words.jsonl --report words",
        kTrain + "--report new --trace new.jsonl",
        kTrain + "--report new --log-file here/new.jsonl",
        kTrain + "--log-dir . --log-json workerlog.0",
        kTrain + "--log-dir new --log-file here/new/workerlog.0",
        kTrain + "--nproc 2 --log-dir new --report new/workerlog.1",
        kTrain + "--log-json set.bin",
        kTrain + "--log-json bin",
        kTrain + "--report here/set.idx",
        kTrain + "--log-json new --report here/new",
        kTrain +
            "--tokenizer-type HuggingFaceTokenizer --tokenizer-model model --report model/tokenizer.json",
        kTune + "--log-json records/train.json",
        kTune + "--report here/model/config.json",
        kTune + "--log-json new --log-file here/new",
        std::string("megalith-merge --input sets/a set --output-prefix here/set"),
        std::string("megalith-convert model --to hf --output here/model"),
        std::string("megalith-convert model --to megalith --output ."),
        std::string("megalith-tokenizer train --input sets/../lines.jsonl --vocab-size 260 --output ."),
        kTrain + "--config run.yaml --log-json run.yaml",
        kTrain + "--config run.yaml --report here/run.yaml",
        kTune + "--config run.yaml --log-json run.yaml",
        kTrain + "--hostfile hosts --log-json here/hosts",
        "RANK_TABLE_FILE=table.json RANK_ID=0 " + kTrain + "--log-json table.json",
        kTrain + "--model-name-or-path model --report model/model.safetensors",
        kTrain + "--model-name-or-path here/model --log-file model/config.json",
        kPlan + "--config run.yaml --html run.yaml",
        kPlan + "--cluster cluster.yaml --html here/cluster.yaml",
        kPlan + "--coefficients coefficients --html here/coefficients",
        kPlan + "--html new --trace here/new"}) {
    const CommandResult refused = run(command);
    EXPECT_EQ(refused.code, 64) << command << ": " << refused.err;
    EXPECT_NE(refused.err.find(command.substr(command.rfind(' ') + 1)), std::string::npos)
        << command << ": " << refused.err;
    EXPECT_TRUE(files() == before) << command;
  }
}

// The run first builds an index from the arrays; even so, they count as its inputs.
TEST_F(Outputs, ThatAreNumpysArraysAreRefused) {
  fs::copy(test_data("train/goldens/paddle"), dir_ / "arrays");
  std::string train = kTrain + "--input-dir arrays --log-json arrays/corpus_ids.npy";
  train.erase(train.find("--data-path set "), std::string("--data-path set ").size());
  const std::string before = read_file(dir_ / "arrays/corpus_ids.npy");
  const CommandResult refused = run(train);
  EXPECT_EQ(refused.code, 64) << refused.err;
  EXPECT_NE(refused.err.find("\"arrays/corpus_ids.npy\" is also an input, of --input-dir"), std::string::npos)
      << refused.err;
  EXPECT_EQ(read_file(dir_ / "arrays/corpus_ids.npy"), before);
}

// A run reads and writes a checkpoint's files below the folder that was named. No output may replace any of
// them.
TEST_F(Outputs, ThatLieInACheckpointAreRefused) {
  const std::string resume =
      kTrainOnSet + "--lr-decay-iters 9 --save ck --load ck --log-json ck/log.jsonl --report ck/report.html ";
  for (const char* const steps :
       {"--train-iters 2", "--train-iters 3"}) {  // a log next to checkpoints is allowed
    const CommandResult trained = run(resume + steps);
    ASSERT_EQ(trained.code, 0) << steps << ": " << trained.err;
  }
  ASSERT_EQ(run(kTune + "--report tuned/report.html").code, 0);
  const auto before = files();
  for (const auto& [command, output] :
       {std::pair<std::string, std::string>{kTrain + "--load ck --log-json ", "ck/iter_0000003/index.json"},
        {kTrain + "--load ck --report ", "ck/iter_0000003/losses.json"},
        {kTrain + "--load ck/iter_0000003 --log-file ", "ck/iter_0000003/args.json"},
        {kTrain + "--save ck --log-file ", "./ck/iter_0000003/state.json"},
        {kTrain + "--save ck --trace ", "ck/latest_checkpointed_iteration.txt"},
        {kTrain + "--save new --report ", "new"},
        {kTrain + "--save new --report ", "new/iter_0000002/report"},
        {kTune + "--report ", "tuned/adapter_config.json"},
        {kTune + "--log-file ", "tuned/iter_0000002/state.json"},
        {kTuneAnother + "--model ck --log-json ", "ck/iter_0000003/index.json"},
        {kTuneAnother + "--model ck --report ", "ck/iter_0000003/state.json"},
        {kTuneAnother + "--model ck/iter_0000003 --trace ", "ck/iter_0000003/tokenizer/vocab.json"},
        {kTuneAnother + "--model model --resume-from-checkpoint ck --trace ", "ck/iter_0000003/args.json"},
        {kTrain + "--model-name-or-path ck --log-file ", "ck/iter_0000003/args.json"},
        {"megalith-convert ck --to gguf --output ", "ck/iter_0000003/state.gguf"},
        {"megalith-convert ck --to hf --output ", "ck/iter_0000003/tokenizer"}}) {
    const CommandResult refused = run(command + output);
    EXPECT_EQ(refused.code, 64) << command << output << ": " << refused.err;
    EXPECT_NE(refused.err.find(quote(output)), std::string::npos) << refused.err;
    EXPECT_TRUE(files() == before) << command << output;
  }
}

// No program may write below the folder of a checkpoint, whether it reads the checkpoint or not.
TEST_F(Outputs, ThatLieInACheckpointsFolderAreRefused) {
  ASSERT_EQ(run(kTrain + "--save ck && megalith-convert model --to megalith --output rel").code, 0);
  const std::string tune = "megalith-finetune --data records --max-steps 2 --model ";
  const std::string tokenizer = "megalith-tokenizer train --input lines.jsonl --vocab-size 260 --output ";
  const auto before = files();
  for (const auto& [command, output] :
       {std::pair<std::string, std::string>{kTrain + "--save ", "ck/iter_0000002"},
        {kTrain + "--save ", "ck/iter_0000002/sub"},
        {kTrain + "--load ck --save ", "ck/iter_0000002/sub"},
        {kTrain + "--load ck/iter_0000002 --save ", "ck/iter_0000002/sub"},
        {kTrain + "--model-name-or-path model --output-dir ", "ck/iter_0000002/sub"},
        {kTrain + "--save new --tensorboard-dir ", "ck/iter_0000002/sub"},
        {kTrain + "--save new --data-cache-path ", "ck/iter_0000002/sub"},
        {kTrain + "--save new --log-json ", "ck/iter_0000002/sub/log"},
        {kTrain + "--save new --log-dir ", "ck/iter_0000002/sub"},
        {kTrain + "--save new --report ", "ck/iter_0000002/sub/page"},
        {tune + "model --output-dir ", "ck/iter_0000002/sub"},
        {tune + "ck --output-dir ", "ck/iter_0000002/sub/deep"},
        {tune + "ck/iter_0000002 --lora --output-dir ", "ck/iter_0000002/sub"},
        {tune + "rel/release --lora --output-dir ", "rel/release/sub"},
        {"megalith-convert model --to hf --output ", "ck/iter_0000002/sub/deep"},
        {"megalith-convert ck --to hf --output ", "ck/iter_0000002/sub"},
        {"megalith-convert ck/iter_0000002 --to megatron --output ", "ck/iter_0000002/sub"},
        {"megalith-convert rel --to megalith --output ", "rel/release/sub"},
        {"megalith-convert rel/release --to gguf --output ", "rel/release/sub/m.gguf"},
        {kPreprocess + "--output-prefix ", "ck/iter_0000002/sub/out"},
        {kPreprocess + "--output-prefix new --rejects ", "ck/iter_0000002/sub/rejects"},
        {"megalith-merge --input sets --output-prefix ", "ck/iter_0000002/sub/out"},
        {tokenizer, "ck/iter_0000002/sub/deep"},
        {kPlan + "--html ", "ck/iter_0000002/sub/page"},
        {"megalith-autoplan profile --output ", "ck/iter_0000002/sub/device"}}) {
    const CommandResult refused = run(command + output);
    EXPECT_EQ(refused.code, 64) << command << output << ": " << refused.err;
    EXPECT_NE(refused.err.find(output), std::string::npos) << refused.err;
    EXPECT_TRUE(files() == before) << command << output;
    EXPECT_FALSE(file_exists(dir_ / "ck/iter_0000002/sub")) << command << output;
    EXPECT_FALSE(file_exists(dir_ / "rel/release/sub")) << command << output;
  }
}

// Nothing reads a new subfolder of a Hugging Face model as a part of the model, so a user who stands in the
// folder may write there.
TEST_F(Outputs, MayLieInAModelsFolder) {
  const auto before = files();
  const std::string tune =
      "cd model && megalith-finetune --model . --data ../records --lora --max-steps 2 --micro-batch-size 1 ";
  for (const std::string& command :
       {tune + "--output-dir tuned", tune + "--output-dir ./deep/tuned",
        std::string("cd model && megalith-convert . --to megalith --output ours"),
        std::string("cd model && megalith-convert . --to hf --output copy"),
        std::string("cd model && megalith-convert . --to gguf --output copies/model.gguf")}) {
    const CommandResult written = run(command);
    EXPECT_EQ(written.code, 0) << command << ": " << written.err;
  }
  for (const auto& [name, contents] : before) EXPECT_EQ(read_file(name), contents) << name;
  EXPECT_EQ(run("megalith-convert model --to hf --output whole").code, 0);
  EXPECT_EQ(read_file(dir_ / "whole/config.json"), read_file(dir_ / "model/copy/config.json"));
  const CommandResult tokenizer = run(tune + "--output-dir tokenizer");
  EXPECT_EQ(tokenizer.code, 64) << tokenizer.err;  // a checkpoint's tokenizer lies there
}

// The result of a tuning run may not replace the model, adapter or data that the run began with.
TEST_F(Outputs, OfATuningDoNotReplaceWhatItBeganWith) {
  ASSERT_EQ(run(kTuneModel + "tuned --merge-weights && ln -s tuned link").code, 0);
  const auto before = files();
  const std::string tune = "megalith-finetune --max-steps 2 --micro-batch-size 1 --output-dir tuned ";
  for (const std::string& command :
       {tune + "--lora --data records --model model --adapter tuned",
        tune + "--lora --data records --model model --adapter link/",
        tune + "--lora --data records --merge-weights --model tuned/merged",
        tune + "--data records --model link/hf",
        tune + "--do-generation --model model --data link/generated_predictions.jsonl"}) {
    const CommandResult refused = run(command);
    EXPECT_EQ(refused.code, 64) << command << ": " << refused.err;
    EXPECT_NE(refused.err.find(quote(command.substr(command.rfind(' ') + 1)) + " would be replaced"),
              std::string::npos)
        << command << ": " << refused.err;
    EXPECT_TRUE(files() == before) << command;
  }
  const CommandResult answered = run(kTuneModel +
                                     "tuned --adapter tuned --no-do-train --do-generation "
                                     "--max-new-tokens 2 --eval-data records/train.json");
  EXPECT_EQ(answered.code, 0) << answered.err;  // answers in that folder are not part of the adapter
}

// A folder that a program writes appears only when it is complete, and with its tracker.
TEST_F(Outputs, OfAConversionAppearAtOnce) {
  ASSERT_EQ(run("megalith-convert model --to megalith --output out").code, 0);
  const CommandResult watched =
      run("rm -rf out; megalith-convert model --to megalith --output out & pid=$!\n"
          "while kill -0 $pid 2>/dev/null; do test ! -e out || test -e out/latest_checkpointed_iteration.txt "
          "|| exit 9; done; wait $pid");
  EXPECT_EQ(watched.code, 0) << watched.err;
  write_file(dir_ / "out/more", "mine");
  EXPECT_EQ(run("megalith-convert model --to megalith --output out").code, 64);
  EXPECT_EQ(read_file(dir_ / "out/more"), "mine");
}

}  // namespace
}  // namespace megalith::test
