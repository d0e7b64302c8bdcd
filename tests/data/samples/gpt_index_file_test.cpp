#include "libcore/data/samples/gpt_index_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::TempDir;

class KeptIndex : public testing::Test {
 protected:
  static IndexedDataset counting(const std::string& prefix, int sequences) {
    IndexedDatasetWriter writer(prefix, IndexedDType::kU16);
    for (int i = 0; i < sequences; ++i) {
      const std::vector<int32_t> ids(static_cast<size_t>(3 + i % 7), i);
      writer.add_document(ids, std::vector<int32_t>{static_cast<int32_t>(ids.size())});
    }
    writer.finish();
    return IndexedDataset(prefix);
  }
  static GptSpec spec(int64_t samples) {
    return {.range = {0, 40}, .samples = samples, .seq_length = 5, .seed = 7};
  }
  static void expect_same(const GptIndex& a, const GptIndex& b) {
    const auto list = [](const auto& values) { return std::vector<int64_t>(values.begin(), values.end()); };
    EXPECT_EQ(list(a.documents), list(b.documents));
    EXPECT_EQ(a.samples.index(), b.samples.index());
    EXPECT_EQ(std::visit(list, a.samples), std::visit(list, b.samples));
    EXPECT_EQ(std::visit(list, a.shuffle), std::visit(list, b.shuffle));
    EXPECT_EQ(a.epochs, b.epochs);
    EXPECT_EQ(a.last_epoch_apart, b.last_epoch_apart);
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(folder_)) paths.push_back(entry.path());
    return paths;
  }

  const TempDir dir_;
  const std::string folder_ = dir_ / "cache";
  const IndexedDataset data_ = counting(dir_ / "c", 40);
};

TEST_F(KeptIndex, IsTheOneThatIsBuilt) {
  for (const int64_t samples : {1, 20, 500})
    for (int turn = 0; turn < 2; ++turn)
      expect_same(kept_gpt_index(data_, spec(samples), folder_), build_gpt_index(data_, spec(samples)));
  EXPECT_EQ(kept().size(), 3U);
}

TEST_F(KeptIndex, IsTakenFromTheFile) {
  const GptIndex first = kept_gpt_index(data_, spec(20), folder_),
                 again = kept_gpt_index(data_, spec(20), folder_);
  const std::string path = kept().front();
  const auto written = fs::last_write_time(path);
  expect_same(kept_gpt_index(data_, spec(20), folder_), first);
  EXPECT_EQ(fs::last_write_time(path), written);
  fs::remove(path);  // the mapping must outlive the file's name
  expect_same(again, first);
}

TEST_F(KeptIndex, IsAnotherForOtherDataOrOtherSamples) {
  kept_gpt_index(data_, spec(20), folder_);
  GptSpec other = spec(20);
  other.seed = 8;
  expect_same(kept_gpt_index(data_, other, folder_), build_gpt_index(data_, other));
  const IndexedDataset changed = counting(dir_ / "c", 41);  // another dataset with the same name
  expect_same(kept_gpt_index(changed, spec(20), folder_), build_gpt_index(changed, spec(20)));
  EXPECT_EQ(kept().size(), 3U);
}

TEST_F(KeptIndex, IsMadeAgainWhereItIsDamaged) {
  const GptIndex whole = build_gpt_index(data_, spec(20));
  kept_gpt_index(data_, spec(20), folder_);
  const std::string path = kept().front(), bytes = read_file(path);
  test::LogLines log;
  for (size_t at = 0; at < bytes.size(); at += 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    std::ofstream(path, std::ios::binary) << damaged;
    expect_same(kept_gpt_index(data_, spec(20), folder_), whole);
    EXPECT_EQ(read_file(path), bytes);
  }
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  expect_same(kept_gpt_index(data_, spec(20), folder_), whole);
  EXPECT_GT(log.lines.size(), 1U);
  EXPECT_NE(log.lines.front().find("is damaged"), std::string::npos) << log.lines.front();
}

TEST_F(KeptIndex, IsBuiltWhereItCannotBeKept) {
  write_file(folder_, "a file");
  expect_same(kept_gpt_index(data_, spec(20), folder_), build_gpt_index(data_, spec(20)));
}

}  // namespace
}  // namespace megalith
