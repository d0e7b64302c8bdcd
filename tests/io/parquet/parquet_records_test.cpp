#include "libcore/io/parquet/parquet_records.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "tests/io/parquet/hand_made.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

const auto kNoGrowth = [](size_t) {};

/// Made by tools/golden/make_parquet.py with pyarrow 26.0.1, duckdb 2.0.1, polars 2.1.0 and fastparquet
/// 2026.9.0: X.parquet, and X.jsonl with the rows that pyarrow reads from it.
std::string golden(const std::string& name) {
  return test::test_data("io/parquet/goldens/" + name);
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines = split(read_file(path), '\n');
  lines.pop_back();  // what follows the last line end
  return lines;
}

struct Row {
  std::string text;
  uint64_t number;  // in the file, from 1
};

std::vector<Row> take_rows(RecordReader& reader) {
  std::vector<Row> rows;
  for (LineBatch batch; reader.next(batch, kNoGrowth);)
    for (size_t i = 0; i < batch.lines(); ++i) {
      const std::span<char> line = batch.line(i);
      rows.push_back({{line.begin(), line.end()}, batch.place(i, 0).line});
    }
  return rows;
}

std::vector<std::string> texts(const std::vector<Row>& rows) {
  std::vector<std::string> all;
  for (const Row& row : rows) all.push_back(row.text);
  return all;
}

std::vector<std::string> read(const std::string& path, const std::vector<std::string>& keys = {},
                              const StreamPart& part = {}) {
  ParquetRecords reader(path, keys, {}, {}, part);
  return texts(take_rows(reader));
}

/// The message of the kData that reading ends with.
std::string error_of(const std::string& path, const std::vector<std::string>& keys = {}) {
  try {
    read(path, keys);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    return error.what();
  }
  return "no error";
}

class ParquetGoldens : public testing::TestWithParam<const char*> {
 protected:
  std::string parquet() const { return golden(concat(GetParam(), ".parquet")); }
  std::vector<std::string> expected() const { return lines_of(golden(concat(GetParam(), ".jsonl"))); }
};

TEST_P(ParquetGoldens, HaveTheRowsThatPyarrowReads) {
  EXPECT_EQ(read(parquet()), expected());
}

TEST_P(ParquetGoldens, AreReadInBatchesOfAnySize) {
  for (const size_t lines : {1, 2, 7}) {
    ParquetRecords reader(parquet(), {}, {.bytes = 50, .lines = lines});
    EXPECT_EQ(texts(take_rows(reader)), expected());
    EXPECT_EQ(reader.consumed(), file_size(parquet()));
  }
}

TEST_P(ParquetGoldens, AreReadOnFromEveryRow) {
  const std::vector<std::string> all = expected();
  for (size_t row = 0; row <= all.size(); ++row) {
    ParquetRecords reader(parquet(), {}, {}, {.place = {.line = row + 1}});
    const std::vector<Row> rows = take_rows(reader);
    EXPECT_EQ(texts(rows), std::vector<std::string>(all.begin() + static_cast<ptrdiff_t>(row), all.end()));
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].number, row + i + 1);
  }
}

TEST_P(ParquetGoldens, HaveTheSameRowsInPartsOfRowGroups) {
  const std::string path = parquet();
  const std::vector<uint64_t> begins = read_parquet_footer(ReadableFile(path)).begins;
  std::vector<std::string> rows;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    EXPECT_EQ(row_group_at_or_behind(path, begins[i] + 1), begins[i + 1]);
    for (std::string& row : read(path, {}, {{begins[i], 0}, StreamPlace{begins[i + 1], 0}}))
      rows.push_back(std::move(row));
  }
  EXPECT_EQ(rows, expected());
}

TEST_P(ParquetGoldens, CutOffAnywhereAreRefused) {
  const std::string whole = read_file(parquet());
  const test::TempDir dir;
  for (size_t size = 4; size < whole.size(); size += 97) {
    write_file(dir / "cut.parquet", whole.substr(0, size));
    EXPECT_NE(error_of(dir / "cut.parquet").find("cut.parquet: damaged Parquet data in its last bytes"),
              std::string::npos)
        << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ParquetGoldens,
                         testing::Values("delta_zstd_v2", "dictionary_snappy_v2", "duckdb_v1", "duckdb_v2",
                                         "fastparquet_gzip", "fastparquet_snappy", "gzip_checksums",
                                         "no_rows", "old_lists", "plain_v1", "polars", "split_floats",
                                         "with_times"),
                         [](const auto& golden_file) { return golden_file.param; });

TEST(ParquetRecords, ReadTheWantedColumns) {
  const std::string path = golden("plain_v1.parquet");
  const std::vector<std::string> rows = read(path, {"meta.lang", "text"});
  EXPECT_EQ(rows[0], R"({"text":"plain","meta":{"lang":"en"}})");
  EXPECT_EQ(rows[2], R"({"meta":{"lang":"en"}})") << "a null is a missing key";
  EXPECT_EQ(rows[5], R"({"text":"été, 東京, 😀"})");
  EXPECT_EQ(read(path, {"tags"})[3], R"({"tags":["b",null,"c"]})");
}

TEST(ParquetRecords, NameTheColumnsIfOneIsMissing) {
  EXPECT_EQ(error_of(golden("fastparquet_gzip.parquet"), {"body"}),
            golden("fastparquet_gzip.parquet") +
                R"(: the Parquet file has no column "body"; it has "text", "n", "small", "flag", "score")");
  EXPECT_NE(error_of(golden("plain_v1.parquet"), {"messages.content"}).find("no column \"messages.content\""),
            std::string::npos)
      << "a list has no members";
}

TEST(ParquetRecords, RefuseWhatTheyDoNotRead) {
  EXPECT_NE(error_of(golden("refused_lz4.parquet")).find("column \"text\" is compressed by LZ4_RAW; wanted"),
            std::string::npos);
  EXPECT_NE(
      error_of(golden("refused_brotli.parquet")).find("is compressed by BROTLI; wanted SNAPPY, GZIP, ZSTD"),
      std::string::npos);
  const std::string times = error_of(golden("with_times.parquet"), {"text", "when", "attributes"});
  EXPECT_NE(times.find("JSON cannot express \"when\" (no text, number or truth), \"attributes\" (a map)"),
            std::string::npos)
      << times;
  ParquetRecords all(golden("with_times.parquet"), {}, {});
  EXPECT_EQ(all.left_out().size(), 2U);
}

TEST(ParquetRecords, FindADamagedPageByItsChecksum) {
  std::string bytes = read_file(golden("gzip_checksums.parquet"));
  const test::TempDir dir;
  const ParquetFooter footer = read_parquet_footer(ReadableFile(golden("gzip_checksums.parquet")));
  const ColumnChunk& chunk = footer.groups[1].columns[0];
  bytes[static_cast<size_t>(chunk.begin + chunk.bytes - 1)] ^= 1;  // the end of the last page
  write_file(dir / "bad.parquet", bytes);
  const std::string message = error_of(dir / "bad.parquet");
  EXPECT_NE(message.find("bad.parquet: damaged Parquet data in column \"text\", from byte "),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("found a page with CRC-32 "), std::string::npos) << message;
}

TEST(ParquetRecords, CutRowsThatAreTooLong) {
  ParquetRecords reader(golden("plain_v1.parquet"), {"text"}, {.longest = 30});
  const std::vector<std::string> rows = texts(take_rows(reader));
  EXPECT_EQ(rows[0], R"({"text":"plain"})");
  EXPECT_GT(rows[6].size(), 30U);  // the text of 70 bytes
  EXPECT_LT(rows[6].size(), 40U);
}

TEST(ParquetRecords, RefuseRowsThatAreTooLong) {
  ParquetRecords reader(golden("plain_v1.parquet"), {"text"}, {.refused = 60});
  try {
    take_rows(reader);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("plain_v1.parquet: row 7 has more than 60 bytes"),
              std::string::npos)
        << error.what();
  }
}

TEST(ParquetRecords, AskForRoomBeforeALargeRow) {
  std::vector<size_t> asked;
  ParquetRecords reader(golden("plain_v1.parquet"), {"text"}, {.bytes = 40, .lines = 1});
  for (LineBatch batch; reader.next(batch, [&](size_t bytes) { asked.push_back(bytes); });) {
  }
  ASSERT_FALSE(asked.empty());
  EXPECT_GE(asked[0], 70U);
}

TEST(ParquetRecords, OpenWhatIsParquetByItsContent) {
  const test::TempDir dir;
  fs::copy_file(golden("no_rows.parquet"), dir / "named.jsonl");
  write_file(dir / "lines.jsonl", "{\"text\":\"a\"}\n");
  EXPECT_TRUE(take_rows(*open_corpus(dir / "named.jsonl", {.keys = {"text"}}, {})).empty());
  EXPECT_EQ(take_rows(*open_corpus(dir / "lines.jsonl", {.keys = {"text"}}, {})).size(), 1U);
  write_file(dir / "other.parquet", "{\"text\":\"a\"}\n");
  EXPECT_THROW(open_corpus(dir / "other.parquet", {.keys = {"text"}}, {}), Error);
  EXPECT_THROW(open_corpus(golden("no_rows.parquet"), {.text = TextUnit::kFile}, {}), Error);
}

// The object is larger than what is read and written at once, and ends inside such a block.
TEST(ParquetRecords, ReadALargeObjectThatACommandWrites) {
  const test::TempDir dir, temporary;
  const test::Variable where("TMPDIR", temporary.path().string());
  const std::string a(300'001, 'a'), b(200'003, 'b');
  write_file(dir / "object",
             test::file_of_texts(test::page_of_texts({a, b}), 2, parquet::Codec::kUncompressed,
                                 parquet::Repetition::kRequired));
  const auto reader =
      open_corpus({"s3://bucket/a.parquet", "cat '" + dir / "object" + "'"}, {.keys = {"t"}}, {});
  EXPECT_TRUE(fs::is_empty(temporary.path())) << "the object's file has no name any more";
  EXPECT_EQ(texts(take_rows(*reader)),
            (std::vector<std::string>{R"({"t":")" + a + "\"}", R"({"t":")" + b + "\"}"}));
}

}  // namespace
}  // namespace megalith
