#include <string>

#include <gtest/gtest.h>

#include "libcore/io/file.h"
#include "tests/support/files.h"
#include "tests/support/goldens.h"

namespace megalith {
namespace {

using test::convert_golden;
using test::TempDir;

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
           Case{convert_golden("gpt2") + " more --output " + dir / "x", 64, "one input is wanted"},
           Case{convert_golden("gpt2") + " --dtype q8_0 --output " + dir / "x", 64, "needs --to gguf"},
           Case{convert_golden("gpt2") + " --tp 2 --output " + dir / "x", 64, "need --to megatron"},
           Case{convert_golden("gpt2") + " --to megatron --tp 2 --output " + dir / "x", 64,
                "is not a multiple of"},
           Case{convert_golden("gpt2") + " --max-shard-size big --output " + dir / "x", 64,
                "\"big\" is no size"},
           Case{convert_golden("gpt2") + " --tokenizer-model " + dir / "ours" + " --output " + dir / "x", 66,
                "--tokenizer-model \""},
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
