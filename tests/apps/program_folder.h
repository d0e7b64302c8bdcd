#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/io/file.h"
#include "tests/support/files.h"

namespace megalith::test {

/// A folder with a model, "model", a dataset, "set", a folder of datasets, "sets", and a corpus,
/// "lines.jsonl", in which the programs are called by their names.
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
    write_file(dir_ / "lines.jsonl", "{\"text\": \"1 2 3\"}\n{\"text\": \"4 5\"}\n");
  }
  CommandResult run(const std::string& script) const {
    return run_command("PATH=" + std::filesystem::path(app("data")).parent_path().string() + ":$PATH; cd " +
                       dir_.path().string() + " || exit 9\n" + script);
  }
  TempDir dir_;
};

}  // namespace megalith::test
