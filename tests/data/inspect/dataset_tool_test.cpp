#include "libcore/data/inspect/dataset_tool.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/indexed/token_check.h"
#include "libcore/data/inspect/dataset_statistics.h"
#include "libcore/data/merge/merge.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/null_tokenizer.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::TempDir;

/// Writes the documents {5, 0, 9}, {}, and one with the sequences {} and {1, 1, 3, 5}; and the sidecar.
void write_dataset(const std::string& prefix) {
  IndexedDatasetWriter writer(prefix, IndexedDType::kU16);
  writer.add_document(std::array<int32_t, 3>{5, 0, 9}, std::array<int32_t, 1>{3});
  writer.add_document({}, {});
  writer.add_document(std::array<int32_t, 4>{1, 1, 3, 5}, std::array<int32_t, 2>{0, 4});
  writer.finish();
  Sidecar sidecar{.tokenizer = "T", .vocab_size = 10, .max_token_id = 9};
  writer.describe(sidecar);
  make_sidecar(prefix, sidecar)->commit();
}

std::string refusal(const std::string& prefix) {
  try {
    verify_dataset(prefix);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    return error.what();
  }
  return {};
}

TEST(DatasetTool, FindsAFlippedBitAnywhere) {
  const TempDir dir;
  write_dataset(dir / "c");
  EXPECT_EQ(verify_dataset(dir / "c"), Verified::kContent);
  for (const char* ending : {".bin", ".idx"}) {
    const std::string path = dir / "c" + ending, whole = read_file(path);
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
      std::ofstream(path, std::ios::binary | std::ios::trunc) << flipped;
      EXPECT_NE(refusal(dir / "c").find(ending), std::string::npos) << ending << " byte " << i;
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole;
  }
  std::filesystem::remove(dir / "c.json");
  EXPECT_EQ(verify_dataset(dir / "c"), Verified::kStructure);
}

TEST(DatasetTool, CountsTheGreatestIdAgain) {
  const TempDir dir;
  write_dataset(dir / "c");
  Sidecar sidecar = *read_sidecar(dir / "c");
  sidecar.max_token_id = 8;
  make_sidecar(dir / "c", sidecar)->commit();
  EXPECT_NE(refusal(dir / "c").find("c.json: says that the max token id is 8, but the dataset's is 9"),
            std::string::npos);
}

// The sidecars are sealed again, so that only their contents can be refused.
TEST(DatasetTool, ComparesEachCountOfTheSidecar) {
  const TempDir dir;
  write_dataset(dir / "c");
  const Sidecar sound = *read_sidecar(dir / "c");
  const auto refusal_of = [&](int64_t Sidecar::*count, int64_t value) {
    Sidecar changed = sound;
    changed.*count = value;
    make_sidecar(dir / "c", changed)->commit();
    return refusal(dir / "c");
  };
  for (const auto& [name, count] : {std::pair("documents", &Sidecar::documents),
                                    {"sequences", &Sidecar::sequences},
                                    {"tokens", &Sidecar::tokens}}) {
    for (const int64_t value : {sound.*count + 1, sound.*count - 1, int64_t{1} << 40})
      EXPECT_NE(refusal_of(count, value).find(concat("number of ", name, " is ", value)), std::string::npos)
          << name << ' ' << value;
    EXPECT_NE(refusal_of(count, -1).find(concat(name, " is -1, wanted a count")), std::string::npos) << name;
  }
  EXPECT_NE(refusal_of(&Sidecar::vocab_size, -1).find("vocab_size is -1, wanted a count"), std::string::npos);
  EXPECT_NE(refusal_of(&Sidecar::vocab_size, 9).find("max_token_id is 9, wanted less than vocab_size, 9"),
            std::string::npos);
  Sidecar changed = sound;
  changed.options = 5;
  make_sidecar(dir / "c", changed)->commit();
  EXPECT_NE(refusal(dir / "c").find("c.json: options is not an object"), std::string::npos)
      << refusal(dir / "c");
}

// Changes each byte of the sidecar in turn; each change must be found. The beginning, which identifies the
// file as a sidecar, is left unchanged.
TEST(DatasetTool, FindsAChangeOfTheSidecarAnywhere) {
  const TempDir dir;
  write_dataset(dir / "c");
  const std::string whole = read_file(dir / "c.json");
  for (size_t i = whole.find("version"); i < whole.find(",\n  \"checksum\""); ++i) {
    std::string changed = whole;
    changed[i] = changed[i] == '7' ? '8' : '7';
    std::ofstream(dir / "c.json", std::ios::binary | std::ios::trunc) << changed;
    EXPECT_NE(refusal(dir / "c").find("c.json: its checksum does not match"), std::string::npos) << i;
  }
}

TEST(DatasetTool, VerifiesAMergedDataset) {
  const TempDir dir;
  write_dataset(dir / "in/a");
  write_dataset(dir / "in/b");
  merge_datasets({.inputs = {dir / "in"}, .output_prefix = dir / "all"});
  EXPECT_EQ(verify_dataset(dir / "all"), Verified::kContent);
  std::fstream(dir / "all.bin", std::ios::in | std::ios::out | std::ios::binary).seekp(15).put('\1');
  EXPECT_NE(refusal(dir / "all").find("all.bin: its XXH64 is"), std::string::npos);
}

TEST(DatasetTool, DescribesCountsAndSidecar) {
  const TempDir dir;
  write_dataset(dir / "c");
  const Json json = dataset_json(IndexedDataset(dir / "c"));
  EXPECT_EQ(json["type"].as_string(), "uint16");
  EXPECT_EQ(json["documents"].as_int(), 3);
  EXPECT_EQ(json["sequences"].as_int(), 3);
  EXPECT_EQ(json["tokens"].as_int(), 7);
  EXPECT_EQ(json["longest_sequence"].as_int(), 4);
  EXPECT_EQ(json["bin_bytes"].as_int(), 14);
  EXPECT_EQ(json["sidecar"]["max_token_id"].as_int(), 9);
  std::filesystem::remove(dir / "c.json");
  EXPECT_TRUE(dataset_json(IndexedDataset(dir / "c"))["sidecar"].is_null());
}

TEST(DatasetTool, PrintsDocuments) {
  const TempDir dir;
  write_dataset(dir / "c");
  const auto printed = [&](int64_t from, int64_t count) {
    std::ostringstream out;
    print_documents(IndexedDataset(dir / "c"), from, count, nullptr, out);
    std::string text = out.str();
    std::erase(text, ' ');
    return text;
  };
  EXPECT_EQ(
      printed(0, 10),
      "{\"document\":0,\"ids\":[5,0,9]}\n{\"document\":1,\"ids\":[]}\n{\"document\":2,\"ids\":[1,1,3,5]}\n");
  EXPECT_EQ(printed(1, 1), "{\"document\":1,\"ids\":[]}\n");
  EXPECT_EQ(printed(3, 1), "");
}

TEST(DatasetTool, CountsLengthsAndIds) {
  const TempDir dir;
  write_dataset(dir / "c");
  const IndexedDataset data(dir / "c");
  const Json lengths = lengths_json(document_lengths(data));
  EXPECT_EQ(lengths["empty_documents"].as_int(), 1);
  EXPECT_EQ(lengths["min"].as_int(), 0);
  EXPECT_EQ(lengths["median"].as_int(), 3);
  EXPECT_EQ(lengths["max"].as_int(), 4);
  EXPECT_DOUBLE_EQ(lengths["mean"].as_double(), 7.0 / 3);
  const NullTokenizer tokenizer(10);
  const Json ids = ids_json(count_ids(data), 2, &tokenizer);
  EXPECT_EQ(ids["different"].as_int(), 5);  // the ids 0, 1, 3, 5 and 9
  // 1 and 5 occur twice; the smaller id comes first
  const Json::Array& rows = ids["most_frequent"].as_array();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["id"].as_int(), 1);
  EXPECT_EQ(rows[0]["count"].as_int(), 2);
  EXPECT_EQ(rows[0]["text"].as_string(), "1");
  EXPECT_EQ(rows[1]["id"].as_int(), 5);
}

TEST(DatasetTool, RefusesABeginningBeyondTheLastDocument) {
  const TempDir dir;
  write_dataset(dir / "c");
  std::ostringstream out;
  try {
    print_documents(IndexedDataset(dir / "c"), 4, 1, nullptr, out);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(std::string(error.what()).find("--from 4 is beyond the end of"), 0u) << error.what();
  }
}

TEST(DatasetTool, DrawsAPageThatFitsTheTerminal) {
  const TempDir dir;
  write_dataset(dir / "c");
  const IndexedDataset data(dir / "c");
  const NullTokenizer tokenizer(10);
  std::ostringstream out;
  print_dataset(data, out);
  print_lengths(document_lengths(data), {.columns = 30}, out);
  print_ids(count_ids(data), 2, &tokenizer, out);
  print_beginnings(data, 3, nullptr, {.columns = 22}, out);
  const std::string prefix = dir / "c";
  EXPECT_EQ(out.str(), prefix + R"(
  documents  3
  sequences  3, the longest of 4 tokens
  tokens     7, uint16
  files      .bin 14 B, .idx 102 B
  tokenizer  T of 10 ids, the max here 9
  content    hashes are kept: `megalith-data verify` compares
tokens a document: min 0,
  median 3, mean 2.3, 90 % up
  to 4, 99 % up to 4, max 4; 1
  empty
  tokens  documents
       0          1  █████████
       1          0
   2 - 3          1  █████████
   4 - 7          1  █████████
5 different ids; id, occurrences, share, text of the most frequent
         1                 2   28.57 %  "1"
         5                 2   28.57 %  "5"
  0  5 0 9
  1  (empty)
  2  1 1 3 5
)");
}

TEST(DatasetTool, TruncatesBeginningsAtTheEdgeOfTheTerminal) {
  const TempDir dir;
  IndexedDatasetWriter writer(dir / "c", IndexedDType::kU16);
  const std::vector<int32_t> ids(1000, 7);
  writer.add_document(ids, std::array<int32_t, 2>{100, 900});
  writer.finish();
  std::ostringstream out;
  print_beginnings(IndexedDataset(dir / "c"), 9, nullptr, {.columns = 30}, out);
  EXPECT_EQ(out.str(), "  0  7 7 7 7 7 7 7 7 7 7 7 7 …\n");  // 30 columns including the ellipsis
}

TEST(LengthCounts, GivesExactQuantilesAndBins) {
  LengthCounts lengths;
  // Adds 0 to 999 once each, and three lengths of at least 2^20, in arbitrary order.
  for (int64_t i = 999; i >= 0; --i) lengths.add(i);
  for (const int64_t i : {int64_t{5} << 30, int64_t{1} << 20, int64_t{1} << 31}) lengths.add(i);
  EXPECT_EQ(lengths.size(), 1003);
  EXPECT_EQ(lengths.min(), 0);
  EXPECT_EQ(lengths.quantile(0), 0);
  EXPECT_EQ(lengths.quantile(0.5), 501);
  EXPECT_EQ(lengths.quantile(0.998), int64_t{1} << 20);  // the element with index 1000 of the sorted lengths
  EXPECT_EQ(lengths.quantile(0.9989), int64_t{1} << 31);
  EXPECT_EQ(lengths.quantile(1), int64_t{5} << 30);
  EXPECT_EQ(lengths.sum(), 999 * 500 + (int64_t{7} << 30) + (int64_t{1} << 20));
  const auto bins = lengths.bins();
  ASSERT_EQ(bins.size(), 34u);  // one bin for length 0 and one for each of 33 bit widths
  EXPECT_EQ(bins[0], (LengthCounts::Bin{0, 0, 1}));
  EXPECT_EQ(bins[1], (LengthCounts::Bin{1, 1, 1}));
  EXPECT_EQ(bins[9], (LengthCounts::Bin{256, 511, 256}));
  EXPECT_EQ(bins[10], (LengthCounts::Bin{512, 1023, 488}));
  EXPECT_EQ(bins[21].count, 1);
  EXPECT_EQ(bins[33], (LengthCounts::Bin{int64_t{1} << 32, (int64_t{1} << 33) - 1, 1}));
}

TEST(IdCounts, CountsThoseItCannotTellApart) {
  const TempDir dir;
  IndexedDatasetWriter writer(dir / "c", IndexedDType::kI32);
  writer.add_document(std::array<int32_t, 4>{-1, 1 << 24, (1 << 24) - 1, 3}, std::array<int32_t, 1>{4});
  writer.finish();
  const IdCounts counts = count_ids(IndexedDataset(dir / "c"));
  EXPECT_EQ(counts.outside, 2);
  EXPECT_EQ(counts.different(), 2);
  EXPECT_EQ(counts.most_frequent(5), (std::vector<int64_t>{3, (1 << 24) - 1}));
}

// What is printed waits in a block; an error must not drop it.
TEST(DatasetTool, PrintsTheDocumentsBeforeAnErrorToo) {
  const TempDir dir;
  write_file(dir / "c.bin", std::string("\1\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0", 16));  // 1 and 2^40
  {
    IndexedDatasetWriter writer(dir / "of", IndexedDType::kI64);
    const std::array<int32_t, 1> one = {1};
    for (int i = 0; i < 2; ++i) writer.add_document(one, one);
    writer.finish();
  }
  std::filesystem::rename(dir / "of.idx", dir / "c.idx");
  std::ostringstream out;
  EXPECT_THROW(print_documents(IndexedDataset(dir / "c"), 0, 2, nullptr, out), Error);
  EXPECT_TRUE(out.str().starts_with("{\"document\": 0, \"ids\": [1]}\n")) << out.str();
  std::ostringstream none;
  print_documents(IndexedDataset(dir / "c"), 2, 5, nullptr, none);
  EXPECT_EQ(none.str(), "");
}

/// Bytes of mapped files that this process has in memory.
size_t mapped_here() {
  std::istringstream status(read_file("/proc/self/status"));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssFile:")) return std::stoul(line.substr(8)) << 10;
  return 0;
}

TEST(DatasetTool, GivesBackThePagesThatItReads) {
  const TempDir dir;
  constexpr size_t kDocument = 1 << 16, kDocuments = 512;  // 64 MiB
  {
    IndexedDatasetWriter writer(dir / "c", IndexedDType::kU16);
    const std::vector<int32_t> ids(kDocument, 7);
    for (size_t i = 0; i < kDocuments; ++i)
      writer.add_document(ids, std::array<int32_t, 1>{static_cast<int32_t>(kDocument)});
    writer.finish();
  }
  constexpr size_t kMost = size_t{24} << 20;
  const IndexedDataset data(dir / "c");
  const size_t before = mapped_here();
  EXPECT_EQ(scan_tokens(data).max, 7);
  EXPECT_LT(mapped_here(), before + kMost);
  EXPECT_EQ(count_ids(data).of_id[7], static_cast<int64_t>(kDocument * kDocuments));
  EXPECT_LT(mapped_here(), before + kMost);
  std::ofstream nowhere("/dev/null");
  print_documents(data, 0, kDocuments, nullptr, nowhere);
  EXPECT_LT(mapped_here(), before + kMost);
  std::ostringstream out;
  print_documents(data, 1, 1, nullptr, out);
  std::string expected = "{\"document\": 1, \"ids\": [7";
  for (size_t i = 1; i < kDocument; ++i) expected += ", 7";
  EXPECT_EQ(out.str(), expected + "]}\n");
}

}  // namespace
}  // namespace megalith
