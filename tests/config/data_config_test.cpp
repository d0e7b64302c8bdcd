#include "libcore/config/data_config.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using Words = std::vector<std::string>;

class DataArgs : public testing::Test {
 protected:
  std::string file(const std::string& contents) const {
    write_file(dir_ / "args", contents);
    return dir_ / "args";
  }
  static std::string complaint(const DataConfig& config) {
    Problems problems;
    config.validate(problems);
    try {
      problems.throw_if_any();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  /// What reading the files of `config` throws.
  static std::string failure(DataConfig config, ErrorKind kind) {
    try {
      config.read_words();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
    return {};
  }
  const test::TempDir dir_;
};

TEST_F(DataArgs, AreTheWordsOfTheDataPath) {
  DataConfig config;
  config.args_file = file("  0.3 a\n\n0.7\tb\r\n");
  config.read_words();
  EXPECT_EQ(config.data_path, (Words{"0.3", "a", "0.7", "b"}));
  config.read_words();  // as a program may do again
  EXPECT_EQ(config.data_path.size(), 4U);
  EXPECT_EQ(complaint(config), "");
}

TEST_F(DataArgs, ComeInPlaceOfThePathNotBesideIt) {
  DataConfig config;
  config.args_file = file("a");
  config.data_path = {"b"};
  config.read_words();
  EXPECT_EQ(config.data_path, Words{"b"});
  EXPECT_NE(complaint(config).find("--data-args-path and --data-path contradict each other"),
            std::string::npos);
  DataConfig split;
  split.split_args_file = file(R"({"train": "a"})");
  split.valid_path = {"b"};
  split.read_words();
  EXPECT_NE(complaint(split).find("--per-split-data-args-path and --train-data-path"), std::string::npos);
  split.valid_path.clear();
  split.args_file = split.split_args_file;
  split.read_words();
  EXPECT_NE(complaint(split).find("--data-args-path and --per-split-data-args-path"), std::string::npos);
}

// As in get_blend_and_blend_per_split of Megatron-LM (training/utils/common_utils.py), where a part is a text
// or a list of texts.
TEST_F(DataArgs, AreTheWordsOfEachPart) {
  DataConfig config;
  config.split_args_file = file(R"({"train": ["0.3", "a", 0.7, "b"], "valid": "c  d", "test": null})");
  config.read_words();
  EXPECT_EQ(config.train_path, (Words{"0.3", "a", "0.7", "b"}));
  EXPECT_EQ(config.valid_path, (Words{"c", "d"}));
  EXPECT_EQ(config.test_path, Words{});
  EXPECT_EQ(complaint(config), "");
}

TEST_F(DataArgs, NameTheFileAndWhatIsWrong) {
  DataConfig config;
  config.args_file = file(" \n");
  EXPECT_EQ(failure(config, ErrorKind::kUsage),
            "--data-args-path " + config.args_file + ": holds no word; wanted those of --data-path");
  file(std::string("a\0b", 3));
  EXPECT_EQ(failure(config, ErrorKind::kUsage),
            "--data-args-path " + config.args_file + ": is no text; wanted the words of --data-path");
  config.args_file = dir_ / "none";
  EXPECT_NE(failure(config, ErrorKind::kNoInput).find("none"), std::string::npos);
  config.args_file.clear();
  config.split_args_file = file("[1]");
  EXPECT_NE(failure(config, ErrorKind::kUsage).find("is no JSON object"), std::string::npos);
  file(R"({"train": "a", "val": "b"})");
  EXPECT_NE(failure(config, ErrorKind::kUsage)
                .find("\"val\" is no part of the data; wanted \"train\", \"valid\" and \"test\""),
            std::string::npos);
  file(R"({"train": {"a": 1}})");
  EXPECT_NE(failure(config, ErrorKind::kUsage).find("\"train\" is {\"a\": 1}, wanted the words"),
            std::string::npos);
  file(R"({"train": ["a", true]})");
  EXPECT_NE(failure(config, ErrorKind::kUsage).find("\"train\" is true, wanted the words"),
            std::string::npos);
  file("{}");
  EXPECT_NE(failure(config, ErrorKind::kUsage).find("names no dataset"), std::string::npos);
}

// A job of Megatron-LM without --data-cache-path makes PREFIX/cache/GPTDataset_indices.
TEST_F(DataArgs, NameADatasetBesideTheFolderOfItsCache) {
  const std::string prefix = dir_ / "wiki", texts = dir_ / "texts";
  for (const std::string& folder : {prefix, texts}) std::filesystem::create_directories(folder + "/cache");
  write_file(prefix + ".idx", "");
  DataConfig config;
  config.train_path = {prefix};
  EXPECT_FALSE(config.reads_texts());
  config.valid_path = {"0.3", "a", "0.7", "b"};
  config.test_path = {"c"};
  config.fim.on = true;
  EXPECT_EQ(complaint(config), "");
  for (const std::string& folder : {texts, prefix + '/'}) {
    config.train_path = {folder};
    EXPECT_TRUE(config.reads_texts()) << folder;
  }
  EXPECT_NE(complaint(config).find("--valid-data-path 0.3 a 0.7 b is not text"), std::string::npos);
}

TEST(FimConfig, NeedsItsSwitchAndItsPairs) {
  const auto complaint = [](const FimConfig& fim) {
    Problems problems;
    fim.validate(problems);
    try {
      problems.throw_if_any();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  FimConfig fim;
  fim.rate = 0.9;
  EXPECT_NE(complaint(fim).find("--fim-rate needs --fim-data"), std::string::npos);
  fim.on = true;
  EXPECT_EQ(complaint(fim), "");
  fim.split_sample = "<file>";
  EXPECT_NE(complaint(fim).find("--fim-split-sample <file> needs --fim-fragment-rate"), std::string::npos);
  fim.fragment_rate = 0.5;
  EXPECT_EQ(complaint(fim), "");
  fim.split_sample.reset();
  EXPECT_NE(complaint(fim).find("--fim-fragment-rate 0.5 needs --fim-split-sample"), std::string::npos);
}

}  // namespace
}  // namespace megalith
