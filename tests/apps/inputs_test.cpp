// Tests every program with inputs that shrink while they are read, are named twice, form a cycle, are not
// files, or are not what their names suggest.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/apps/program_folder.h"
#include "tests/support/compiler.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// Limits what a command may take, in KiB of addresses. A sanitizer needs more of them than any limit leaves.
std::string address_limit(int64_t kib) {
  return kSanitizer ? std::string() : concat("ulimit -v ", kib, "; ");
}

class Inputs : public ProgramFolder {
 protected:
  const std::string kTrain = kTrainOnSet + "--log-interval 1 ";
  const std::string kPreprocess =
      "megalith-preprocess --output-prefix out --tokenizer-type NullTokenizer --vocab-size 9 --input ";
};

TEST_F(Inputs, ThatAreTruncatedWhileTheyAreMappedEndTheRunWithTheirName) {
  for (const char* const file : {"set.bin", "set.idx"}) {
    const CommandResult cut = run(
        concat("rm -f log; cp ", file, " kept; timeout -s KILL 60 ", kTrain,
               "--train-iters 1000000 > log 2>&1 & pid=$!\n",
               "until grep -q 'iteration .* 2/' log || ! kill -0 $pid; do sleep 0.02; done; truncate -s 0 ",
               file, "; wait $pid; code=$?; mv kept ", file, "; exit $code"));
    EXPECT_EQ(cut.code, 65) << file;
    const std::string log = read_file(dir_ / "log");
    EXPECT_NE(
        log.find(concat("pretrain: error: set", fs::path(file).extension().string(), ": cannot be read")),
        std::string::npos)
        << log.substr(log.size() - std::min<size_t>(log.size(), 500));
  }
}

TEST_F(Inputs, InFoldersAreReadOnceThoughLinksLeadToThemAgain) {
  fs::create_directories(dir_ / "corpus/deep");
  write_file(dir_ / "corpus/a.jsonl", "{\"text\": \"1 2 3\"}\n");
  write_file(dir_ / "corpus/deep/b.jsonl", "{\"text\": \"4 5\"}\n");
  ASSERT_EQ(run("cd corpus; ln -s ../corpus deep/circle; ln -s deep again; ln -s a.jsonl z.jsonl; "
                "ln a.jsonl hard.jsonl; ln -s loop loop; ln -s corpus ../link")
                .code,
            0);
  for (const char* const inputs : {"corpus", "corpus/", "link", "corpus link corpus/deep", "corpus corpus"}) {
    const CommandResult made = run("rm -f out*; " + kPreprocess + inputs);
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_NE(made.all().find("2 documents, 2 sequences, 5 tokens"), std::string::npos)
        << inputs << made.all();
  }
  // Files that are named one by one are read in the order of the command line.
  const CommandResult named = run("rm -f out*; " + kPreprocess + "corpus/a.jsonl corpus/z.jsonl");
  EXPECT_NE(named.all().find("2 documents, 2 sequences, 6 tokens"), std::string::npos) << named.err;
}

// An endless line, from a device or from a few bytes that expand on decompression, would fill the memory. It
// must be refused.
TEST_F(Inputs, WhoseLinesHaveNoEndAreRefused) {
  const std::string encode = "megalith-tokenizer encode --tokenizer-model model --input ";
  const std::string limit = concat("(", address_limit(8'000'000), "timeout 60 ");
  for (const std::string& command :
       {"rm -rf records; ln -s /dev/zero records; " + limit + kTuneModel + "tuned)",
        limit + "megalith-tokenizer train --input /dev/zero --vocab-size 300 --output out)",
        "head -c 300000000 /dev/zero | gzip -1 > zeros.gz; " + limit + encode + "zeros.gz)"}) {
    const CommandResult refused = run(command);
    EXPECT_EQ(refused.code, 65) << command << ": " << refused.err;
    EXPECT_NE(refused.err.find(":1: the line has more than 268435456 bytes"), std::string::npos)
        << command << ": " << refused.err;
  }
}

TEST_F(Inputs, OfModelsThatHaveNoEndAreRefused) {
  for (const char* const from : {"< /dev/zero", "--chat - < /dev/zero", "--prompts-file - < /dev/zero",
                                 "--prompts-file /dev/zero", "--chat /dev/zero"}) {
    const CommandResult refused =
        run(concat("(", address_limit(4'000'000), "timeout 30 megalith-generate --model model ", from, ")"));
    EXPECT_EQ(refused.code, 65) << from << ": " << refused.err;
    EXPECT_NE(refused.err.find("has more than 256 MiB"), std::string::npos) << from << ": " << refused.err;
  }
}

// A sparse file takes no room and may have any size. Every file of a tokenizer has a bound, and one beyond it
// is refused at once, before it is hashed or read.
TEST_F(Inputs, OfTokenizersThatAreTooLargeAreRefused) {
  ASSERT_EQ(run("truncate -s 1T big; echo > merges; cp model/tokenizer.json .").code, 0);
  std::vector<std::pair<std::string, std::string>> tokenizers = {
      {"--tokenizer-type GPT2BPETokenizer --vocab-file big --merge-file merges", "big"},
      {"--tokenizer-type GPT2BPETokenizer --vocab-file tokenizer.json --merge-file big", "big"},
      {"--tokenizer-type HuggingFaceTokenizer --tokenizer-model big", "big"},
      {"--tokenizer-type GPTSentencePieceTokenizer --tokenizer-model big", "big"},
      {"--tokenizer-type Llama2Tokenizer --tokenizer-model big", "big"},
      {"--tokenizer-type TikTokenizer --tokenizer-model big", "big"}};
  for (const std::string name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"})
    ASSERT_EQ(run(concat("cp -r model with-", name, "; ln -f big with-", name, "/", name)).code, 0);
  for (const std::string name : {"tokenizer.json", "tokenizer_config.json"})
    tokenizers.emplace_back("--tokenizer-type HuggingFaceTokenizer --tokenizer-model with-" + name,
                            concat("with-", name, "/", name));
  const std::string train =
      "megalith-pretrain --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 "
      "--max-position-embeddings 8 --micro-batch-size 2 --lr 0.01 --data-path set --train-iters 2 ";
  for (const auto& [options, file] : tokenizers)
    for (const std::string& command :
         {std::string("megalith-tokenizer encode --input lines.jsonl "), train, kTuneModel + "tuned ",
          std::string("megalith-preprocess --input lines.jsonl --output-prefix out ")}) {
      const CommandResult refused = run("timeout 20 " + command + options);
      EXPECT_EQ(refused.code, 65) << command << options << ": " << refused.err;
      EXPECT_NE(refused.err.find(file + ": has 1099511627776 bytes, too many for such a file; wanted at most "
                                        "1073741824 (1024 MiB)"),
                std::string::npos)
          << command << options << ": " << refused.err;
    }
  for (const std::string command :
       {"megalith-generate --prompt a --max-new-tokens 1 --model with-tokenizer.json",
        "megalith-convert --output out with-tokenizer.json",
        "megalith-convert --output out with-tokenizer_config.json",
        "megalith-convert --output out with-special_tokens_map.json"}) {
    const CommandResult refused = run("timeout 20 " + command);
    EXPECT_EQ(refused.code, 65) << command << ": " << refused.err;
    EXPECT_NE(refused.err.find(".json: has 1099511627776 bytes"), std::string::npos)
        << command << ": " << refused.err;
  }
}

// A FIFO that the user names may be read. A FIFO inside a model's folder must be refused, since nobody would
// ever write to it.
TEST_F(Inputs, ThatAreFifosInFoldersAreNotWaitedFor) {
  for (const std::string name :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json",
        "added_tokens.json", "chat_template.jinja", "generation_config.json", "model.safetensors",
        "model.safetensors.index.json", "adapter_config.json"})
    for (const std::string command : {"megalith-convert --output out with", "megalith-convert inspect with",
                                      "megalith-generate --prompt a --max-new-tokens 1 --model with"}) {
      const CommandResult read = run("rm -rf with out; cp -r model with; rm -f with/" + name +
                                     (name.ends_with(".index.json") ? " with/model.safetensors" : "") +
                                     "; mkfifo with/" + name + "; timeout 20 " + command);
      EXPECT_TRUE(read.code == 0 || read.code == 65 || read.code == 66)
          << name << ' ' << command << ": " << read.code << ' ' << read.err;
      EXPECT_TRUE(read.code == 0 || read.err.find("with/" + name) != std::string::npos)
          << name << ' ' << command << ": " << read.err;
    }
}

TEST_F(Inputs, ThatAreNotWhatTheirNamesSayAreRefused) {
  for (const char* const end : {".gz", ".xz", ".bz2", ".zst"}) {
    for (const char* const text : {"{\"text\": \"1\"}\n", "", "\n", "\x1f"}) {
      write_file(dir_ / (std::string("lines.jsonl") + end), text);
      const CommandResult refused = run("rm -f out*; " + kPreprocess + "lines.jsonl" + end);
      EXPECT_EQ(refused.code, 65) << end << ": " << refused.err;
      EXPECT_NE(refused.err.find("is named as"), std::string::npos) << refused.err;
      EXPECT_FALSE(file_exists(dir_ / "out_text_document.bin"));
    }
  }
}

TEST_F(Inputs, OfPromptsAreDecompressedOrRefused) {
  const std::string generate = "megalith-generate --model model --max-new-tokens 2 --prompts-file ";
  write_file(dir_ / "p.txt", "The \nif\n");
  write_file(dir_ / "p.jsonl", "{\"prompt\": \"The \"}\n{\"prompt\": \"if\"}\n");
  const CommandResult plain = run(generate + "p.txt");
  ASSERT_EQ(plain.code, 0) << plain.err;
  for (const auto& [end, packer] :
       {std::pair{".gz", "gzip"}, {".xz", "xz"}, {".bz2", "bzip2"}, {".zst", "zstd -q"}}) {
    for (const char* const name : {"p.txt", "p.jsonl"}) {
      const std::string packed = concat(name, end);
      const CommandResult whole = run(concat(packer, " < ", name, " > ", packed, "; ", generate, packed));
      EXPECT_EQ(whole.out, plain.out) << packed << ": " << whole.err;
      const CommandResult refused = run(concat("cp ", name, " ", packed, "; ", generate, packed));
      EXPECT_EQ(refused.code, 65) << packed << ": " << refused.err;
      EXPECT_NE(refused.err.find(packed + ": is named as"), std::string::npos) << refused.err;
    }
  }
}

TEST_F(Inputs, OfBytesThatGiveNoDocumentAreNamed) {
  write_file(dir_ / "blank.jsonl", "\n  \n\n");
  write_file(dir_ / "array.json", "[]\n");
  write_file(dir_ / "empty.jsonl", "");
  const CommandResult made = run(kPreprocess + "lines.jsonl blank.jsonl array.json empty.jsonl");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.err.find("2 of 4 inputs are not empty and hold no document: blank.jsonl, array.json"),
            std::string::npos)
      << made.err;
  EXPECT_EQ(run("rm -f out*; " + kPreprocess + "lines.jsonl empty.jsonl").err.find("no document"),
            std::string::npos);
}

// Inputs that never end, or that would block, must be refused within seconds and in little memory.
TEST_F(Inputs, ThatAreNoFilesLetNobodyWait) {
  ASSERT_EQ(run("megalith-convert model --to megalith --output ours").code, 0);
  struct Case {
    std::string prepare, command;
  };
  const std::string tracker = "ours/latest_checkpointed_iteration.txt";
  for (const auto& [prepare, command] :
       {Case{"rm " + tracker + "; mkfifo " + tracker, "megalith-convert inspect ours"},
        {"rm " + tracker + "; mkfifo " + tracker, kTrain + "--train-iters 1 --load ours"},
        {"mkfifo out.resume.json", kPreprocess + "lines.jsonl --resume"},
        {"mkfifo out_text_document.json", kPreprocess + "lines.jsonl"},
        {"rm set.bin; mkfifo set.bin", "megalith-data inspect set"},
        {"mkfifo set.json", "megalith-data verify set"},
        {"ln -s /dev/zero set.json", "megalith-data verify set"},
        {"",
         "megalith-preprocess --input lines.jsonl --output-prefix out --vocab-file /dev/zero --merge-file "
         "/dev/zero"},
        {"ln -s /dev/zero zero.json",
         "megalith-preprocess --input lines.jsonl --output-prefix out --tokenizer-model zero.json"},
        {"", "megalith-generate --model model --chat /dev/zero"},
        {"", "megalith-eval --model model --tasks /dev/zero"},
        {"", "megalith-report /dev/zero"},
        {"", "megalith-top /dev/zero"},
        {"rm model/config.json; ln -s /dev/zero model/config.json", "megalith-convert inspect model"},
        {"rm model/model.safetensors; mkfifo model/model.safetensors", "megalith-convert inspect model"}}) {
    const CommandResult ended =
        run("mkdir k; cp -r model set.bin set.idx ours k\n" + prepare + "\n(" + address_limit(4'000'000) +
            "timeout 20 " + command +
            "); code=$?; rm -rf model set.* ours zero.json out*; mv k/* .; rm -r k; exit $code");
    EXPECT_NE(ended.code, 124) << prepare << "; " << command << " waits";
    EXPECT_TRUE(ended.code == 0 || (ended.code >= 64 && ended.code <= 75))
        << prepare << "; " << command << ": " << ended.code << " " << ended.err;
  }
}

// A FIFO or a folder has the name of a file that the program would read next to a dataset or in a folder of
// records. The error must name it.
TEST_F(Inputs, ThatShouldBeFilesAreNamed) {
  for (const std::string make : {"mkfifo ", "mkdir "})
    for (const auto& [name, command] :
         {std::pair<std::string, std::string>{"set.json", "megalith-data verify set"},
          {"set.json", kTrain + "--train-iters 1"},
          {"run.jsonl", "megalith-top run.jsonl"},
          {"set.json", "megalith-merge --input set --output-prefix out"},
          {"records/train.json", kTuneModel + "out"},
          {"records/dev.json", kTuneModel + "out"}}) {
      const CommandResult refused =
          run("cp -r records k; rm -f " + name + "; " + make + name + "; timeout 20 " + command +
              "; code=$?; rm -rf set.json run.jsonl records; mv k records; exit $code");
      EXPECT_EQ(refused.code, 66) << make << name << "; " << command << ": " << refused.err;
      EXPECT_NE(refused.err.find(name + ": is not a regular file"), std::string::npos)
          << make << name << "; " << command << ": " << refused.err;
    }
}

// Every option whose value is a file that is read as a whole, or line by line.
TEST_F(Inputs, ThatAreFoldersInPlaceOfFilesAreNamed) {
  const std::string plan = "megalith-autoplan --hf model --world-size 2 --global-batch-size 2 ";
  ASSERT_EQ(run("mkdir folder").code, 0);
  for (const std::string& command :
       {kTrain + "--train-iters 1 --hostfile folder", kTrain + "--train-iters 1 --config folder",
        "RANK_TABLE_FILE=folder " + kTrain + "--train-iters 1",
        kPreprocess.substr(0, kPreprocess.find("--tokenizer-type")) +
            "--input lines.jsonl --tokenizer-type GPT2BPETokenizer --vocab-file folder --merge-file folder",
        std::string("megalith-rank-table merge folder"), plan + "--coefficients folder",
        plan + "--gpu-file folder", plan + "--cluster folder", plan + "--anchor folder",
        plan + "--calibrate folder", plan + "--verify-log folder",
        std::string("megalith-generate --model model --prompts-file folder"),
        std::string("megalith-eval --model model --tasks folder"), std::string("megalith-report folder"),
        std::string("megalith-tokenizer encode --tokenizer-model model --input folder"),
        kTuneModel + "t --chat-template folder"}) {
    const CommandResult refused = run(command);
    EXPECT_EQ(refused.code, 66) << command << ": " << refused.err;
    EXPECT_NE(refused.err.find("folder: is a folder, wanted a file"), std::string::npos)
        << command << ": " << refused.err;
  }
}

// Two tokens in the checkpoint's tokenizer are exchanged. No check of that file alone would find this.
TEST_F(Inputs, OfACheckpointsTokenizerAreThoseThatWereSaved) {
  const CommandResult made = run("cp -r model named && megalith-convert model --to megalith --output k");
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string file = "k/release/tokenizer/tokenizer.json", good = read_file(dir_ / file);
  std::string bad = good;
  const size_t a = bad.find("\"A\""), b = bad.find("\"B\"");
  ASSERT_TRUE(a != std::string::npos && b != std::string::npos);
  std::swap(bad[a + 1], bad[b + 1]);
  const std::string train =
      "megalith-pretrain --use-checkpoint-args --load k --finetune --data-path set "
      "--train-iters 1 --lr 1e-3 --micro-batch-size 1 --split 1,0,0 --eval-iters 0 "
      "--seq-length 8 --threads 1 --allow-tokenizer-mismatch --save k2";
  for (const std::string& command :
       {train,
        kPreprocess.substr(0, kPreprocess.find("--tokenizer-type")) +
            "--input lines.jsonl --tokenizer-model k/release",
        std::string("megalith-tokenizer encode --input lines.jsonl --tokenizer-model k/release/tokenizer"),
        std::string("cd k/release/tokenizer && megalith-tokenizer encode --input ../../../lines.jsonl "
                    "--tokenizer-model tokenizer.json"),
        std::string("megalith-data cat set --tokenizer-model k/release/tokenizer"),
        std::string("megalith-generate --model k --prompt a --max-new-tokens 1"),
        std::string("megalith-convert named --tokenizer k/release/tokenizer --to hf --output o"),
        std::string("megalith-convert named --tokenizer k/release/tokenizer --to gguf --output o"),
        std::string("megalith-convert named --tokenizer k/release/tokenizer --to megatron --output o"),
        std::string("megalith-convert named --tokenizer k/release/tokenizer --to megalith --output o")}) {
    write_file(dir_ / file, good);
    const std::string clean = "rm -rf out* o k2; ";
    const CommandResult taken = run(clean + command);
    EXPECT_EQ(taken.code, 0) << command << ": " << taken.err;
    write_file(dir_ / file, bad);
    const CommandResult refused = run(clean + command);
    EXPECT_EQ(refused.code, 65) << command << ": " << refused.err;
    EXPECT_NE(refused.err.find("release/tokenizer/tokenizer.json: does not match its checksum"),
              std::string::npos)
        << command << ": " << refused.err;
    EXPECT_FALSE(file_exists(dir_ / "k2") || file_exists(dir_ / "o") ||
                 file_exists(dir_ / "out_text_document.idx"))
        << command;
  }
}

TEST_F(Inputs, OfTokenizersNamedFileByFileAreBlamedUnderTheirNames) {
  const std::string golden = test_data("convert/goldens/gpt2");
  ASSERT_EQ(run("cp -r " + golden + " hf; rm hf/tokenizer* hf/vocab.json; cp " + golden +
                "/vocab.json v.json; "
                "mv hf/merges.txt m.txt; cp " +
                golden + "/tokenizer.json t.json")
                .code,
            0);
  struct Case {
    std::string prepare, options, blamed;
  };
  for (const auto& [prepare, options, blamed] :
       {Case{"echo '{\"a\": 1.5}' > bad.json", "--vocab-file bad.json --merge-file m.txt",
             "bad.json: a is not an integer"},
        {"echo '{\"a\": 99999}' > bad.json", "--vocab-file bad.json --merge-file m.txt",
         "bad.json: token \"a\" has id 99999"},
        {"echo '{\"a\": 1, \"a\": 2}' > bad.json", "--vocab-file bad.json --merge-file m.txt",
         "bad.json: key \"a\" appears twice"},
        {"cp v.json bad.json", "--vocab-file v.json --merge-file bad.json", "bad.json:1: found "},
        {"sed 's/\"id\": *0/\"id\": 1.5/' t.json > bad.json", "--tokenizer-model bad.json",
         "bad.json: added_tokens[0].id is not an integer"},
        {"sed 's/\"model\": */\"modem\":/' t.json > bad.json", "--tokenizer-model bad.json",
         "bad.json: the whole has no key \"model\""}})
    for (const char* const to : {"hf", "gguf", "megatron", "megalith"}) {
      const CommandResult refused =
          run(concat(prepare, "; rm -rf o; megalith-convert hf ", options, " --output o --to ", to));
      EXPECT_EQ(refused.code, 65) << to << ' ' << options << ": " << refused.err;
      EXPECT_EQ(refused.err.find("convert: error: " + blamed), 0U)
          << to << ' ' << options << ": " << refused.err;
      EXPECT_FALSE(file_exists(dir_ / "o"));
    }
  const CommandResult made =
      run("megalith-convert hf --vocab-file v.json --merge-file m.txt --to megatron --output o");
  EXPECT_EQ(made.code, 0) << made.err;
}

TEST_F(Inputs, WithNamesThatLeadNowhereAreNoInternalErrors) {
  const std::string name(300, 'n');
  fs::create_symlink("circle", dir_ / "circle");
  for (const std::string& path : {std::string("circle"), name})
    for (const std::string& command :
         {kPreprocess + path, std::string("megalith-data inspect ") + path,
          std::string("megalith-convert inspect ") + path,
          std::string("megalith-merge --output-prefix out --input ") + path,
          std::string("megalith-generate --prompt a --model ") + path,
          std::string("megalith-tokenizer encode --input lines.jsonl --tokenizer-model ") + path,
          std::string("megalith-tokenizer train --output out --vocab-size 260 --input ") + path}) {
      const CommandResult refused = run(command);
      EXPECT_TRUE(refused.code == 66 || refused.code == 65 || refused.code == 64 || refused.code == 74)
          << command << ": " << refused.code << refused.err;
      EXPECT_EQ(refused.err.find("internal"), std::string::npos) << command << ": " << refused.err;
      EXPECT_NE(refused.err.find(path), std::string::npos) << command << ": " << refused.err;
    }
}

}  // namespace
}  // namespace megalith::test
