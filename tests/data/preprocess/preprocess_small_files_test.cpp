// Inputs of many small files, several of which are read together: what they become is what their lines
// become in one file.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/io/files/file.h"
#include "tests/data/preprocess/preprocess_fixture.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

class PreprocessSmallFiles : public test::PreprocessFixture {
 protected:
  PreprocessSmallFiles() { fs::create_directories(dir_ / "in"); }

  /// Writes a file of the folder that is the input.
  std::string file(int number, const std::string& contents) {
    const std::string path = dir_ / concat("in/", 10000 + number, ".json");
    write_file(path, contents);
    return path;
  }
  std::string dataset() const {
    return read_file(config_.prefix_of("text") + ".bin") + read_file(config_.prefix_of("text") + ".idx");
  }
  std::string dataset_of(const std::string& input) {
    config_.inputs = {input};
    summary_ = run();
    return dataset();
  }
  PreprocessSummary summary_;
};

std::string line(int number) {
  return concat(R"({"text": "document )", number, "\"}\n");
}

TEST_F(PreprocessSmallFiles, BecomeWhatTheirLinesBecome) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) {
    std::string text;
    for (int k = 0; k < i % 5; ++k) text += line(i * 10 + k);  // each fifth file is empty
    if (i == 321)
      text = line(i) + concat(R"({"text": ")", std::string(100'000, 'x'), "\"}\n");  // a large one
    lines += text;
    file(i, text);
  }
  write_file(dir_ / "all", lines);
  for (const int workers : {1, 3}) {
    config_.workers = workers;
    const std::string expected = dataset_of(dir_ / "all");
    const PreprocessSummary of_lines = summary_;
    EXPECT_TRUE(dataset_of(dir_ / "in") == expected) << workers;
    EXPECT_EQ(summary_.lines, of_lines.lines);
    EXPECT_EQ(summary_.bytes, of_lines.bytes);
  }
}

TEST_F(PreprocessSmallFiles, MayHaveArraysAndMarksAndLinesWithoutEnd) {
  file(1, "[{\"text\": \"a\"},\n {\"text\": \"b\"}]");
  file(2, "\xef\xbb\xbf{\"text\": \"c\"}");
  file(3, "{\"text\": \"d\"}\r\n{\"text\": \"e\"}\r");
  write_file(
      dir_ / "all",
      "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n{\"text\": \"d\"}\n{\"text\": \"e\"}\n");
  const std::string expected = dataset_of(dir_ / "all");
  EXPECT_EQ(dataset_of(dir_ / "in"), expected);
}

// A small file is not opened before it is read, so that its first bytes tell only then what it is.
TEST_F(PreprocessSmallFiles, MayBeCompressedOrParquet) {
  const std::string golden = test::test_data("io/parquet/goldens/numbers.parquet");
  ASSERT_LT(fs::file_size(golden), 16384U);
  file(1, line(1));
  fs::copy_file(golden, file(2, ""), fs::copy_options::overwrite_existing);
  const std::string packed = file(3, line(3));
  ASSERT_EQ(test::run_command(concat("gzip ", packed, " && mv ", packed, ".gz ", packed)).code, 0);
  file(4, line(4));
  config_.inputs = {dir_ / "in"};
  EXPECT_NE(error().find("10002.json"), std::string::npos) << error();  // it has no column "text"
  config_.json_keys = {"text"};
  fs::remove(dir_ / "in/10002.json");
  const std::string made = dataset_of(dir_ / "in");
  write_file(dir_ / "all", line(1) + line(3) + line(4));
  EXPECT_EQ(made, dataset_of(dir_ / "all"));
}

// A state names a row of Parquet, not a byte.
TEST_F(PreprocessSmallFiles, AreResumedAtARowOfParquet) {
  const std::string golden = test::test_data("io/parquet/goldens/numbers.parquet");
  const Interrupt interrupt;
  const auto rest_of = [&](const std::string& path) {
    fs::copy_file(golden, path, fs::copy_options::overwrite_existing);
    const std::vector<InputFile> files = look_at_inputs({path});
    DocumentSource source(files, {{.bytes = 1 << 18, .lines = 4096}, 1}, interrupt,
                          {.reader = {.place = {.line = 3}}});
    std::string rest;
    DocumentBatch batch;
    while (source.next(batch, [](size_t) {})) {
      if (rest.empty()) {
        EXPECT_EQ(batch.lines.place(0, 0).line, 3U) << path;
      }
      rest += batch.lines.all();
    }
    return rest;
  };
  const std::string rest = rest_of(dir_ / "named.parquet");
  EXPECT_FALSE(rest.empty());
  EXPECT_EQ(rest_of(dir_ / "small"), rest);
}

TEST_F(PreprocessSmallFiles, AreNamedWhenALineIsBad) {
  for (int i = 0; i < 100; ++i) file(i, line(i));
  const std::string bad = file(42, line(42) + "bad\n"), empty = file(43, "\n");
  config_.inputs = {dir_ / "in"};
  EXPECT_EQ(error().find(bad + ":2:1: "), 0U) << error();
  config_.on_error = OnError::kSkip;
  config_.rejects = dir_ / "rejects";
  summary_ = run();
  EXPECT_EQ(summary_.skipped(), 1);
  EXPECT_EQ(summary_.documents, 99);
  EXPECT_EQ(read_file(dir_ / "rejects"), "bad\n");
  EXPECT_NE(log_text().find(bad + ":2:1"), std::string::npos);
  EXPECT_NE(log_text().find("1 of 100 inputs are not empty and hold no document: " + empty),
            std::string::npos);
}

// The state names files that are too many by a number and a hash of all that is known of them.
TEST_F(PreprocessSmallFiles, AreResumedAmongThousands) {
  for (int i = 0; i < 1100; ++i) file(i, line(i));
  const std::string bad = file(700, "bad\n");
  config_.inputs = {dir_ / "in"};
  config_.resume = true;
  config_.save_interval = 0;
  EXPECT_NE(error().find("malformed JSON"), std::string::npos) << error();
  const std::string journal = read_file(PreprocessJournal::path_of(config_.output_prefix));
  EXPECT_NE(journal.find("\"files\": 1100"), std::string::npos) << journal.substr(0, 500);
  EXPECT_EQ(journal.find("10001.json"), std::string::npos);
  config_.on_error = OnError::kSkip;
  EXPECT_THROW(run(), Error);  // another option
  config_.on_error = OnError::kStrict;
  const auto written = fs::last_write_time(bad);
  file(700, line(7));  // of the same size as before only with its time does it count as the same
  fs::last_write_time(bad, written);
  EXPECT_THROW(run(), Error);
  file(700, "bad\n");
  fs::last_write_time(bad, written);
  EXPECT_NE(error().find("malformed JSON"), std::string::npos) << error();
  EXPECT_NE(log_text().find("Resuming after "), std::string::npos);
}

TEST_F(PreprocessSmallFiles, AreReadTogether) {
  for (int i = 0; i < 200; ++i) file(i, line(i));
  file(100, std::string(20'000, ' ') + line(100));
  const std::vector<InputFile> files = look_at_inputs({dir_ / "in"});
  const Interrupt interrupt;
  DocumentSource source(files, {{.bytes = 1 << 18, .lines = 4096}, 1}, interrupt, {});
  std::vector<size_t> sizes;
  BatchGroup group;
  while (source.next_group(group, [](size_t) {})) sizes.push_back(group.used);
  EXPECT_EQ(sizes, (std::vector<size_t>{64, 36, 1, 64, 35}));
}

}  // namespace
}  // namespace megalith
