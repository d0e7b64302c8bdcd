#include "libcore/data/dataset_tool.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/data/merge.h"
#include "libcore/data/sidecar.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::TempDir;

/// Documents {5, 0, 9}, {}, {}-and-{1, 1, 3, 5} and the sidecar.
void write_dataset(const std::string& prefix) {
  IndexedDatasetWriter writer(prefix, IndexedDType::kU16);
  writer.add_document(std::array<int32_t, 3>{5, 0, 9}, std::array<int32_t, 1>{3});
  writer.add_document({}, {});
  writer.add_document(std::array<int32_t, 4>{1, 1, 3, 5}, std::array<int32_t, 2>{0, 4});
  writer.finish();
  Sidecar sidecar{.tokenizer = "T", .vocab_size = 10, .max_token_id = 9};
  writer.describe(sidecar);
  write_sidecar(prefix, sidecar);
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
  const Json json = describe_dataset(dir / "c");
  EXPECT_EQ(json["type"].as_string(), "uint16");
  EXPECT_EQ(json["documents"].as_int(), 3);
  EXPECT_EQ(json["sequences"].as_int(), 3);
  EXPECT_EQ(json["tokens"].as_int(), 7);
  EXPECT_EQ(json["longest_sequence"].as_int(), 4);
  EXPECT_EQ(json["bin_bytes"].as_int(), 14);
  EXPECT_EQ(json["sidecar"]["max_token_id"].as_int(), 9);
  std::filesystem::remove(dir / "c.json");
  EXPECT_TRUE(describe_dataset(dir / "c")["sidecar"].is_null());
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
  const Json json = dataset_statistics(IndexedDataset(dir / "c"), 2);
  EXPECT_EQ(json["empty_documents"].as_int(), 1);
  EXPECT_EQ(json["tokens_per_document"]["min"].as_int(), 0);
  EXPECT_EQ(json["tokens_per_document"]["median"].as_int(), 3);
  EXPECT_EQ(json["tokens_per_document"]["max"].as_int(), 4);
  EXPECT_DOUBLE_EQ(json["tokens_per_document"]["mean"].as_double(), 7.0 / 3);
  EXPECT_EQ(json["different_ids"].as_int(), 5);                // 0 1 3 5 9
  const Json::Array& rows = json["most_frequent"].as_array();  // 1 and 5 occur twice, the smaller id first
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["id"].as_int(), 1);
  EXPECT_EQ(rows[0]["count"].as_int(), 2);
  EXPECT_EQ(rows[1]["id"].as_int(), 5);
}

}  // namespace
}  // namespace megalith
