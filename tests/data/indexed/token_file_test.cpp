#include "libcore/data/indexed/token_file.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

/// numpy's array(ids, dtype=uint16).tofile() on a little-endian machine.
std::string file_of(const std::vector<uint16_t>& ids) {
  std::string bytes(ids.size() * sizeof ids[0], 0);
  if (!ids.empty()) std::memcpy(bytes.data(), ids.data(), bytes.size());
  return bytes;
}

std::vector<std::vector<int32_t>> documents_of(const std::string& prefix) {
  const IndexedDataset data(prefix);
  std::vector<std::vector<int32_t>> all;
  for (int64_t i = 0; i < data.sequences(); ++i) {
    all.emplace_back(static_cast<size_t>(data.sequence_length(i)));
    data.sequence(i).copy_to(all.back().data());
  }
  return all;
}

TEST(TokenFile, EndsDocumentsAtTheirMark) {
  const test::TempDir dir;
  write_file(dir / "train.bin", file_of({5, 6, 50256, 50256, 7, 65535}));
  const TokenFileCounts counts = index_token_file(dir / "train.bin", dir / "train_document", kGpt2End);
  EXPECT_EQ(counts.tokens, 6);
  EXPECT_EQ(counts.documents, 3);
  EXPECT_EQ(documents_of(dir / "train_document"),
            (std::vector<std::vector<int32_t>>{{5, 6, 50256}, {50256}, {7, 65535}}));
  EXPECT_EQ(index_token_file(dir / "train.bin", dir / "other", 7).documents, 2);
  EXPECT_EQ(prefix_of_token_file("a/train.bin"), "a/train_document");
}

// A document may be longer than what is read at a time, and end anywhere in it.
TEST(TokenFile, KeepsDocumentsAcrossBlocks) {
  const test::TempDir dir;
  std::vector<uint16_t> ids(1'300'000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint16_t>(i % 499);
  for (const size_t at : {size_t{524287}, size_t{524288}, ids.size() - 1}) ids[at] = 1000;
  write_file(dir / "val.bin", file_of(ids));
  EXPECT_EQ(index_token_file(dir / "val.bin", dir / "val", 1000).documents, 3);
  const std::vector<std::vector<int32_t>> documents = documents_of(dir / "val");
  EXPECT_EQ(documents[0].size(), 524288U);
  EXPECT_EQ(documents[1], std::vector<int32_t>{1000});
  std::vector<int32_t> all;
  for (const auto& document : documents) all.insert(all.end(), document.begin(), document.end());
  EXPECT_EQ(all, std::vector<int32_t>(ids.begin(), ids.end()));
}

TEST(TokenFile, RefusesWhatIsNone) {
  const test::TempDir dir;
  for (const char* bytes : {"", "abc"}) {
    write_file(dir / "x.bin", bytes);
    try {
      index_token_file(dir / "x.bin", dir / "x", kGpt2End);
      ADD_FAILURE() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(std::string(error.what()).find("wanted ids of two bytes each"), std::string::npos);
    }
    EXPECT_FALSE(file_exists(dir / "x.idx"));
  }
}

}  // namespace
}  // namespace megalith
