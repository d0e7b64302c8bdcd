// --input-command: inputs that a command reads.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/data/merge/merge_shards.h"
#include "libcore/data/preprocess/preprocess.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// Five objects in a folder that plays a bucket, with names that a shell would cut or expand.
class PreprocessObjects : public testing::Test {
 protected:
  PreprocessObjects() {
    previous_ = set_log_sink([this](const std::string& line) { logged_ += line + '\n'; });
    fs::create_directory(dir_ / "bucket");
    const std::vector<std::string> names = {"a.jsonl", "it's $HOME.jsonl", "c.jsonl.gz", "numbers.parquet",
                                            "e"};
    std::string list;
    for (const std::string& name : names) list += name + "\n\n";
    write_file(dir_ / "list", list);
    for (size_t i = 0; i < 2; ++i)
      write_file(dir_ / ("bucket/" + names[i]), lines(static_cast<int>(i) * 100));
    write_file(dir_ / "bucket/e", "");
    write_file(dir_ / "plain", lines(200));
    EXPECT_EQ(
        test::run_command("gzip -c '" + dir_ / "plain" + "' > '" + dir_ / "bucket/c.jsonl.gz" + "'").code, 0);
    fs::copy_file(test::test_data("io/parquet/goldens/numbers.parquet"), dir_ / "bucket/numbers.parquet");
    for (const std::string& name : names) files_.push_back(dir_ / ("bucket/" + name));
    tokenizer_.type = "NullTokenizer";
    config_.vocab_size = 60'000;
    config_.workers = 2;
    config_.on_error = OnError::kSkip;
    config_.output_prefix = dir_ / "set";
  }
  ~PreprocessObjects() override { set_log_sink(previous_); }

  static std::string lines(int first) {
    std::string text;
    for (int i = first; i < first + 100; ++i) text += concat("{\"text\":\"", i, " ", i + 1, "\"}\n");
    return text;
  }
  void read_objects() {
    config_.inputs = {dir_ / "list"};
    config_.input_command = "cat '" + dir_ / "bucket" + "'/{}";
  }
  std::string dataset() const {
    return read_file(dir_ / "set_text_document.bin") + read_file(dir_ / "set_text_document.idx");
  }
  /// The dataset of the shards in out/.
  std::string merged() const {
    MergeConfig merge;
    merge.shards = dir_ / "out/set";
    merge.output_prefix = dir_ / "set";
    merge_shards(merge, {});
    return dataset();
  }
  /// What one process makes of the same files.
  std::string expected() {
    config_.inputs = files_;
    config_.input_command.clear();
    EXPECT_EQ(run_preprocess(config_, tokenizer_, {}), 0);
    return dataset();
  }
  /// The kind of the error of a run, and its message in error_.
  ErrorKind error_kind() {
    try {
      run_preprocess(config_, tokenizer_, {});
    } catch (const Error& error) {
      error_ = error.what();
      return error.kind();
    }
    error_ = "no error";
    return ErrorKind::kInternal;
  }

  test::TempDir dir_;
  PreprocessConfig config_;
  TokenizerConfig tokenizer_;
  std::vector<std::string> files_;
  std::string logged_, error_;
  LogSink previous_;
};

TEST_F(PreprocessObjects, GiveTheBytesOfTheSameFiles) {
  const std::string files = expected();
  read_objects();
  EXPECT_EQ(run_preprocess(config_, tokenizer_, {}), 0);
  EXPECT_EQ(dataset(), files);
}

TEST_F(PreprocessObjects, AreDealtToShardsWhole) {
  const std::string files = expected();
  read_objects();
  for (const int count : {1, 3, 7}) {
    config_.output_prefix = dir_ / "out/set";
    config_.shard = concat("0-", count - 1, '/', count);
    EXPECT_EQ(run_preprocess_shards(config_, tokenizer_, {}), 0);
    EXPECT_EQ(run_preprocess_shards(config_, tokenizer_, {}), 0);
    EXPECT_NE(logged_.find("already complete"), std::string::npos);
    EXPECT_EQ(merged(), files);
    fs::remove_all(dir_ / "out");
  }
  EXPECT_NE(logged_.find("shard 0 of 3: reading 1 object\n"), std::string::npos) << logged_;
  EXPECT_NE(logged_.find("shard 1 of 3: reading 2 objects\n"), std::string::npos) << logged_;
}

TEST_F(PreprocessObjects, AreReadByShardsAfterOneThatFailed) {
  read_objects();
  write_file(dir_ / "list", "damaged\na.jsonl\n");
  write_file(dir_ / "bucket/damaged", "no JSON\n");
  config_.on_error = OnError::kStrict;
  config_.output_prefix = dir_ / "out/set";
  config_.shard = "0-1/2";
  EXPECT_EQ(run_preprocess_shards(config_, tokenizer_, {}), exit_code(ErrorKind::kData));
  write_file(dir_ / "bucket/damaged", lines(500));
  EXPECT_EQ(run_preprocess_shards(config_, tokenizer_, {}), 0);
  const std::string shards = merged();
  config_.output_prefix = dir_ / "set";
  config_.shard = {};
  files_ = {dir_ / "bucket/damaged", dir_ / "bucket/a.jsonl"};
  EXPECT_EQ(shards, expected());
}

TEST_F(PreprocessObjects, AreNamedInMessagesAboutParquet) {
  read_objects();
  write_file(dir_ / "list", "numbers.parquet\n");
  config_.on_error = OnError::kStrict;
  EXPECT_EQ(error_kind(), ErrorKind::kData);
  EXPECT_EQ(error_.find("numbers.parquet: row 5: missing key"), 0U) << error_;
  const std::string file = dir_ / "bucket/numbers.parquet", whole = read_file(file);
  write_file(file, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(error_kind(), ErrorKind::kData);
  EXPECT_EQ(error_.find("numbers.parquet: damaged Parquet data in its last bytes"), 0U) << error_;
}

TEST_F(PreprocessObjects, AreTriedAgainIfTheCommandFails) {
  read_objects();
  fs::remove(dir_ / "bucket/c.jsonl.gz");
  config_.input_command += " 2>/dev/null";
  EXPECT_EQ(error_kind(), ErrorKind::kComm);
  EXPECT_EQ(error_.find("c.jsonl.gz: `cat '"), 0U) << error_;
  EXPECT_FALSE(fs::exists(dir_ / "set_text_document.bin"));
}

TEST_F(PreprocessObjects, ResumeAfterTheCommandFailed) {
  const std::string files = expected();
  read_objects();
  config_.resume = true;
  config_.workers = 1;  // so that what was read is written before the next object is opened
  config_.save_interval = 0;
  const std::string command = config_.input_command;
  config_.input_command = "test {} != numbers.parquet || exit 7; " + command;
  EXPECT_EQ(error_kind(), ErrorKind::kComm);
  EXPECT_NE(error_.find("numbers.parquet"), std::string::npos) << error_;
  config_.input_command = command;
  EXPECT_EQ(run_preprocess(config_, tokenizer_, {}), 0);
  EXPECT_NE(logged_.find("Resuming after 300 lines"), std::string::npos) << logged_;
  EXPECT_EQ(dataset(), files);
}

TEST_F(PreprocessObjects, AreRefusedWithoutTheirPlace) {
  read_objects();
  config_.input_command = "cat";
  config_.inputs = {"-"};
  Problems problems;
  config_.validate(problems);
  ASSERT_EQ(problems.list().size(), 2U) << problems.text();
  EXPECT_NE(problems.text().find("--input-command \"cat\" has no {}"), std::string::npos) << problems.text();
  EXPECT_NE(problems.text().find("not from stdin"), std::string::npos) << problems.text();
}

TEST_F(PreprocessObjects, NeedAList) {
  read_objects();
  write_file(dir_ / "list", "\n \n");
  EXPECT_EQ(error_kind(), ErrorKind::kNoInput);
  EXPECT_NE(error_.find("list: names no object"), std::string::npos) << error_;
}

}  // namespace
}  // namespace megalith
