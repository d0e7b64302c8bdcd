#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/goldens.h"

namespace megalith {
namespace {

using test::convert_golden;
using test::TempDir;

// Converts as in the CodeParrot tutorial: with one argument, which puts the result next to the input.
TEST(ConvertApp, PutsTheModelBesideOneFileOfWeights) {
  const TempDir dir;
  const std::string convert = test::app("convert"), gpt2 = convert_golden("gpt2");
  ASSERT_EQ(test::run_command(convert + " " + gpt2 + " --to megatron --output " + dir / "m").code, 0);
  const std::string made = dir / "m/release/mp_rank_00/model_optim_rng.pt";
  const auto lay = [&](const std::string& folder, bool tokenizer) {
    std::string command = "mkdir -p " + dir / folder + " && cp " + made + " " + dir / folder;
    if (tokenizer) command += " && cp " + gpt2 + "/vocab.json " + gpt2 + "/merges.txt " + dir / folder;
    ASSERT_EQ(test::run_command(command).code, 0);
  };
  lay("x", true);
  const auto run = test::run_command(convert + " " + dir / "x/model_optim_rng.pt");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(read_file(dir / "x/model.safetensors"), read_file(gpt2 + "/model.safetensors"));
  for (const char* name : {"config.json", "tokenizer.json", "vocab.json", "merges.txt", "model_optim_rng.pt"})
    EXPECT_TRUE(file_exists(dir / "x" + "/" + name)) << name;
  EXPECT_EQ(read_file(dir / "x/vocab.json"), read_file(gpt2 + "/vocab.json"));
  EXPECT_EQ(test::run_command("ls -A " + dir / "x" + " | grep '^\\.'").out, "");  // no temporary file is left
  const auto again = test::run_command(convert + " " + dir / "x/model_optim_rng.pt");
  EXPECT_EQ(again.code, 64) << again.err;
  EXPECT_NE(again.err.find("config.json exists already"), std::string::npos) << again.err;

  lay("y", false);  // no tokenizer: the checkpoint's args give the vocabulary
  const auto plain = test::run_command(convert + " " + dir / "y/model_optim_rng.pt");
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(read_file(dir / "y/model.safetensors"), read_file(gpt2 + "/model.safetensors"));

  // As the tutorial's users run it: the weights alone in a folder, the tokenizer in the working folder.
  lay("alone", false);
  ASSERT_EQ(test::run_command("mkdir " + dir / "here" + " && cp " + gpt2 + "/vocab.json " + gpt2 +
                              "/merges.txt " + dir / "here")
                .code,
            0);
  const auto here =
      test::run_command("cd " + dir / "here" + " && " + convert + " ../alone/model_optim_rng.pt");
  ASSERT_EQ(here.code, 0) << here.err;
  EXPECT_NE(here.err.find("vocab.json and merges.txt of the working folder"), std::string::npos) << here.err;
  EXPECT_EQ(read_file(dir / "alone/model.safetensors"), read_file(gpt2 + "/model.safetensors"));
  EXPECT_EQ(read_file(dir / "alone/tokenizer.json"), read_file(dir / "x/tokenizer.json"));

  lay("z", true);
  write_file(dir / "z/README.md", "mine");
  const auto other = test::run_command(convert + " " + dir / "z/model_optim_rng.pt");
  EXPECT_EQ(other.code, 64) << other.err;
  EXPECT_NE(other.err.find("README.md exists already"), std::string::npos) << other.err;
  EXPECT_EQ(read_file(dir / "z/README.md"), "mine");
  EXPECT_FALSE(file_exists(dir / "z/config.json"));
}

/// Every file of an output with its bytes, except model cards, which contain the time.
std::string bytes_below(const std::string& output) {
  if (!std::filesystem::is_directory(output)) return read_file(output);
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(output))
    if (entry.is_regular_file() && entry.path().filename() != "README.md")
      files[entry.path().string()] = read_file(entry.path().string());
  std::string all;
  for (const auto& [name, bytes] : files) all += concat(name, "\n", bytes.size(), "\n", bytes);
  return all;
}

TEST(ConvertApp, ReplacesAnOutputOnlyWhenToldTo) {
  struct Case {
    const char *options, *output;
  };
  for (const Case& to : {Case{"--to hf", "hf"}, Case{"--to megatron", "megatron"},
                         Case{"--to megalith", "megalith"}, Case{"--to gguf", "x.gguf"}}) {
    SCOPED_TRACE(to.options);
    const test::TempDir dir;
    const auto convert = [&](const std::string& model, const std::string& more) {
      return test::run_command(concat(test::app("convert"), " ", model, " ", to.options, " --output ",
                                      dir / to.output, " --no-check ", more));
    };
    const std::string old = convert_golden("gpt2"), other = convert_golden("llama");
    ASSERT_EQ(convert(old, "").code, 0);
    const std::string before = bytes_below(dir / to.output);
    const auto refused = convert(other, "");
    EXPECT_EQ(refused.code, 64) << refused.err;
    EXPECT_NE(refused.err.find("exists already; give a new"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("--overwrite"), std::string::npos) << refused.err;
    EXPECT_EQ(bytes_below(dir / to.output), before);
    const auto replaced = convert(other, "--overwrite");
    EXPECT_EQ(replaced.code, 0) << replaced.err;
    EXPECT_NE(bytes_below(dir / to.output), before);
    if (to.output == std::string("x.gguf")) continue;
    write_file(dir / to.output + "/notes.txt", "mine");
    EXPECT_EQ(convert(other, "--overwrite").code, 64);
    EXPECT_EQ(read_file(dir / to.output + "/notes.txt"), "mine");
  }
}

TEST(ConvertApp, SaysWhatItDidAndWhatWentWrong) {
  const TempDir dir;
  const std::string app = test::app("convert");
  const auto good =
      test::run_command(app + " " + convert_golden("gpt2") + " --to megalith --output " + dir / "ours" +
                        " && " + app + " " + dir / "ours" + " --output " + dir / "theirs");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out, "");
  EXPECT_EQ(read_file(dir / "theirs/vocab.json"), read_file(convert_golden("gpt2/vocab.json")));
  struct Case {
    std::string arguments;
    int code;
    const char* message;
  };
  for (const auto& [arguments, code, message] : {
           Case{"--output " + dir / "x", 64, "PATH ... is missing"},
           Case{convert_golden("gpt2") + " --to onnx --output " + dir / "x", 64, "hf"},
           Case{"inspect", 64, "inspect needs a path; wanted: inspect PATH"},
           Case{convert_golden("gpt2") + " more --output " + dir / "x", 64, "wanted one input"},
           Case{convert_golden("gpt2") + " --dtype q8_0 --output " + dir / "x", 64, "needs --to gguf"},
           Case{convert_golden("gpt2") + " --tp 2 --output " + dir / "x", 64, "need --to megatron"},
           Case{convert_golden("gpt2") + " --to megatron --tp 2 --output " + dir / "x", 64,
                "is not a multiple of"},
           Case{convert_golden("gpt2") + " --max-shard-size big --output " + dir / "x", 64,
                "\"big\" is not a size"},
           Case{convert_golden("gpt2") + " --tokenizer-model " + dir / "ours" + " --output " + dir / "x", 66,
                "--tokenizer-model /"},
           Case{convert_golden("gpt2") + " --vocab-file v.json --output " + dir / "x", 64,
                "--vocab-file needs --merge-file"},
           Case{convert_golden("gpt2") + " --merge-file m.txt --output " + dir / "x", 64,
                "--merge-file needs --vocab-file"},
           Case{convert_golden("gpt2") + " --tokenizer t --tokenizer-model m --output " + dir / "x", 64,
                "give one"},
           Case{
               convert_golden("gpt2") + " --tokenizer-model " + dir / "none.model" + " --output " + dir / "x",
               66, "none.model"},
           Case{dir / "nowhere" + " --output " + dir / "x", 66, "no such file or folder"},
           Case{convert_golden("gpt2") + " --output /proc/none/x", 74, "/proc/none"},
       }) {
    const auto run = test::run_command(app + " " + arguments);
    EXPECT_EQ(run.code, code) << arguments << run.err;
    EXPECT_NE(run.err.find(message), std::string::npos) << arguments << run.err;
    EXPECT_FALSE(file_exists(dir / "x"));
  }
}

}  // namespace
}  // namespace megalith
