#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// A folder with two datasets of the goldens, in which commands run.
class MergeApp : public testing::Test {
 protected:
  MergeApp() {
    fs::create_directory(dir_ / "in");
    for (const char* name : {"long.bin", "long.idx", "mixed.bin", "mixed.idx"})
      fs::copy_file(golden(name), dir_ / "in/" + name);
  }
  static std::string golden(const std::string& name) { return test_data("data/goldens/" + name); }
  CommandResult merge(const std::string& arguments) {
    return run_command("cd " + dir_.path().string() + " && " + app("merge") + " " + arguments);
  }
  TempDir dir_;
};

// Runs Megatron's command. Megatron's merge_datasets.py requires a folder in --output-prefix; megalith-merge
// does not.
TEST_F(MergeApp, JoinsAFolderBesideTheWorkingFolder) {
  const CommandResult result = merge("--input in --output-prefix merged");
  EXPECT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(result.err, "");  // the log goes to stdout, like upstream's log
  EXPECT_EQ(read_file(dir_ / "merged.bin"), read_file(golden("merged.bin")));
  EXPECT_EQ(read_file(dir_ / "merged.idx"), read_file(golden("merged.idx")));
}

// PaddleNLP's programs take their options from a file that is the first word.
TEST_F(MergeApp, TakesAFileOfOptionsAsTheFirstWord) {
  write_file(dir_ / "merge.json", R"({"input": "in", "output_prefix": "merged"})");
  const CommandResult result = merge("./merge.json");
  EXPECT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(read_file(dir_ / "merged.bin"), read_file(golden("merged.bin")));
  const CommandResult other = merge("merge.json --output-prefix other");
  EXPECT_EQ(other.code, 0) << other.all();
  EXPECT_EQ(read_file(dir_ / "other.idx"), read_file(golden("merged.idx")));
  // A later word is an input, as one of a folder's files may be.
  EXPECT_EQ(merge("--output-prefix third --input in/long in/mixed.json").code, 66);
}

TEST_F(MergeApp, NamesADamagedSourceAndExits65) {
  fs::resize_file(dir_ / "in/mixed.idx", 100);
  const CommandResult result = merge("--input in --output-prefix merged");
  EXPECT_EQ(result.code, 65);
  EXPECT_NE(result.all().find(
                "merge: error: in/mixed.idx: 100 sequences declared but lengths end after 16 (file is 100 "
                "bytes); it was probably truncated"),
            std::string::npos)
      << result.all();
  for (const auto& entry : fs::directory_iterator(dir_.path())) EXPECT_EQ(entry.path().filename(), "in");
}

TEST_F(MergeApp, ExitsByTheKindOfMistake) {
  EXPECT_EQ(merge("--output-prefix merged").code, 64);
  EXPECT_EQ(merge("--input in").code, 64);
  EXPECT_EQ(merge("--input in --output-prefix in/long").code, 64);
  EXPECT_EQ(merge("--input absent --output-prefix merged").code, 66);
  EXPECT_EQ(merge("--input in --output-prefix merged --multimodal").code, 64);
  EXPECT_EQ(merge("--input in --output-prefix /dev/null/merged").code, 74);
}

}  // namespace
}  // namespace megalith::test
