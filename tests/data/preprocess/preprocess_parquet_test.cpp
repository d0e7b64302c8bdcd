// Inputs of Parquet: what they become is what the rows become as lines of JSON.
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

/// X.parquet, or X.jsonl with the rows that pyarrow reads from it (tools/golden/make_parquet.py).
std::string golden(const std::string& name) {
  return test::test_data("io/parquet/goldens/" + name);
}

class PreprocessParquet : public test::PreprocessFixture {
 protected:
  /// Runs on a golden, and returns the bytes of the datasets.
  std::vector<std::string> datasets_of(const std::string& name) {
    config_.inputs = {golden(name)};
    summary_ = run();
    return datasets();
  }
  std::vector<std::string> datasets() const {
    std::vector<std::string> bytes;
    for (const std::string& key : config_.json_keys)
      for (const char* const end : {".bin", ".idx"}) bytes.push_back(read_file(config_.prefix_of(key) + end));
    return bytes;
  }
  PreprocessSummary summary_;
};

TEST_F(PreprocessParquet, BecomesWhatItsRowsBecomeAsJson) {
  config_.on_error = OnError::kSkip;
  config_.append_eod = true;
  for (const char* name :
       {"plain_v1", "dictionary_snappy_v2", "duckdb_v1", "duckdb_v2", "polars", "gzip_checksums"})
    for (const int workers : {1, 3}) {
      SCOPED_TRACE(name);
      config_.json_keys = {"text", "meta.lang", "meta.text"};
      config_.workers = workers;
      const auto expected = datasets_of(concat(name, ".jsonl"));
      const PreprocessSummary rows = summary_;
      EXPECT_EQ(datasets_of(concat(name, ".parquet")), expected);
      EXPECT_EQ(summary_.lines, rows.lines);
      EXPECT_EQ(summary_.documents, rows.documents);
      EXPECT_GT(summary_.documents, 10);
      for (size_t fault = 0; fault < kDocumentFaults; ++fault)
        EXPECT_EQ(summary_.faults[fault].count, rows.faults[fault].count) << fault;
    }
}

TEST_F(PreprocessParquet, MakesSequencesOfLists) {
  config_.on_error = OnError::kSkip;
  config_.json_keys = {"tags"};
  const auto expected = datasets_of("polars.jsonl");
  EXPECT_EQ(datasets_of("polars.parquet"), expected);
  EXPECT_GT(summary_.faults[static_cast<size_t>(DocumentFault::kWrongType)].count, 0) << "a null in a list";
}

TEST_F(PreprocessParquet, NamesTheRowOfABadText) {
  config_.inputs = {golden("plain_v1.parquet")};
  EXPECT_EQ(error().find(golden("plain_v1.parquet") + ": row 3: missing key: "), 0U) << error();
}

TEST_F(PreprocessParquet, KeepsRowsThatAreSkippedAsLines) {
  config_.on_error = OnError::kSkip;
  config_.rejects = dir_ / "rejects";
  config_.json_keys = {"text", "tags"};
  datasets_of("plain_v1.parquet");
  EXPECT_EQ(read_file(config_.rejects).find("{\"text\":\"plain\"}\n{\"tags\":[\"a\"]}\n"), 0U)
      << read_file(config_.rejects);
}

TEST_F(PreprocessParquet, IsRefusedAsPlainText) {
  config_.inputs = {golden("plain_v1.parquet")};
  config_.text = TextUnit::kFile;
  try {
    run();
    FAIL() << "no error";
  } catch (const Error& refused) {
    EXPECT_EQ(refused.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(refused.what()).find("is a Parquet file, not plain text"), std::string::npos);
  }
}

TEST_F(PreprocessParquet, IsFoundInFolders) {
  fs::create_directory(dir_ / "in");
  fs::copy_file(golden("numbers.parquet"), dir_ / "in/train-00000-of-00001.parquet");
  write_file(dir_ / "in/README.md", "no corpus");
  EXPECT_EQ(corpus_files({dir_ / "in"}, TextUnit::kNone),
            std::vector<std::string>{dir_ / "in/train-00000-of-00001.parquet"});
}

TEST_F(PreprocessParquet, ResumesInTheMiddleOfARowGroup) {
  config_.on_error = OnError::kSkip;
  const auto expected = datasets_of("plain_v1.parquet");
  config_.output_prefix = dir_ / "resumed";
  config_.resume = true;
  const test::ByteTokenizer tokenizer;
  const TextTools tools{tokenizer, tokenizer.hash()};
  {
    const std::vector<InputFile> files = look_at_inputs(config_.inputs);
    const Interrupt interrupt;
    DocumentOutput output(config_, tools, {files});
    DocumentSource source(files, {{.bytes = 4096, .lines = 5}, 1, TextUnit::kNone, {"text"}}, interrupt,
                          output.start());
    DocumentEncoder encoder(config_, tools);
    DocumentBatch batch;
    for (int i = 0; i < 3; ++i) {  // 15 rows; the second row group begins after 13
      ASSERT_TRUE(source.next(batch, [](size_t) {}));
      encoder.encode(batch);
      output.take(batch);
    }
    output.save();
  }
  run();
  EXPECT_NE(log_text().find("Resuming after 15 lines, in " + golden("plain_v1.parquet") + ":16"),
            std::string::npos)
      << log_text();
  EXPECT_EQ(datasets(), expected);
}

}  // namespace
}  // namespace megalith
