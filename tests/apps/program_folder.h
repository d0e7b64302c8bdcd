#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {

/// Trains a small model on the dataset "set" of a ProgramFolder. Append --train-iters N.
inline const std::string kTrainOnSet =
    "megalith-pretrain --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 "
    "--max-position-embeddings 8 --micro-batch-size 2 --lr 0.01 --lr-decay-style constant "
    "--data-path set --vocab-size 100000 --split 1,0,0 --eval-iters 0 --threads 1 ";

/// Trains an adapter for the model "model" of a ProgramFolder on its "records". Append the output folder.
inline const std::string kTuneModel =
    "megalith-finetune --model model --data records --lora --max-steps 2 --micro-batch-size 1 --lr 0.01 "
    "--threads 1 --output-dir ";

/// A folder with a model, "model", a dataset, "set", a folder of datasets, "sets", a corpus, "lines.jsonl",
/// and records for fine-tuning, "records". Commands call the programs by name.
class ProgramFolder : public testing::Test {
 protected:
  ProgramFolder() {
    namespace fs = std::filesystem;
    fs::copy(test_data("parity/goldens/generate-gpt2"), dir_ / "model");
    fs::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
    fs::create_directory(dir_ / "sets");
    for (const char* end : {".bin", ".idx"})
      for (const char* prefix : {"set", "sets/a"})
        fs::copy_file(test_data("data/goldens/mixed") + end, dir_ / (std::string(prefix) + end));
    fs::create_directory(dir_ / "records");
    write_file(dir_ / "records/train.json",
               "{\"src\": \"a\", \"tgt\": \"b\"}\n{\"src\": \"c\", \"tgt\": \"d\"}\n");
    write_file(dir_ / "lines.jsonl", "{\"text\": \"1 2 3\"}\n{\"text\": \"4 5\"}\n");
  }
  CommandResult run(const std::string& script) const {
    return run_command("PATH=" + std::filesystem::path(app("data")).parent_path().string() + ":$PATH; cd " +
                       dir_.path().string() + " || exit 9\n" + script);
  }
  TempDir dir_;
};

}  // namespace megalith::test
