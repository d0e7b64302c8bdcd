#include "libcore/data/samples/blend_index_file.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/data/samples/dataset_builder.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::TempDir;

class KeptBlend : public testing::Test {
 protected:
  using Order = std::vector<std::pair<int, int64_t>>;
  static Order order(const BlendIndex& index) {
    Order pairs;
    for (size_t i = 0; i < index.sample.size(); ++i) pairs.emplace_back(index.dataset[i], index.sample[i]);
    return pairs;
  }
  size_t files() const {
    if (!fs::exists(folder_)) return 0;
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  std::string file() const { return fs::directory_iterator(folder_)->path(); }
  // The index for weights 0.75 and 0.25, computed by hand: each sample comes from the dataset that is
  // furthest behind, or from the first of several (helpers.cpp).
  const Order by_hand_ = {{0, 0}, {1, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 1}, {0, 4}, {0, 5}};
  const TempDir dir_;
  const std::string folder_ = dir_ / "cache";
};

TEST_F(KeptBlend, IsTheOneThatIsBuilt) {
  const std::vector<double> weights = {0.75, 0.25};
  for (int turn = 0; turn < 2; ++turn)
    EXPECT_EQ(order(kept_blend_by_weights(weights, 8, folder_)), by_hand_) << turn;
  EXPECT_EQ(files(), 1u);
  const std::vector<int64_t> sizes = {6, 2};
  for (int turn = 0; turn < 2; ++turn)
    EXPECT_EQ(order(kept_blend_exhaustively(sizes, folder_)), by_hand_) << turn;
  EXPECT_EQ(files(), 2u);
}

TEST_F(KeptBlend, IsMappedFromTheFile) {
  const std::vector<double> weights = {0.75, 0.25};
  kept_blend_by_weights(weights, 8, folder_);
  const auto written = fs::last_write_time(file());
  const BlendIndex again = kept_blend_by_weights(weights, 8, folder_);
  EXPECT_EQ(fs::last_write_time(file()), written);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(again.sample.data()) % 64, 0u);
  const std::string map = read_file("/proc/self/maps");
  EXPECT_NE(map.find(fs::path(file()).filename().string()), std::string::npos);
  fs::remove(file());  // the mapping must outlive the file's name
  EXPECT_EQ(order(again), by_hand_);
}

// A weight that differs in its last bit must have a file of its own, since that bit may change the order.
TEST_F(KeptBlend, IsAnotherForOtherWeightsOrSizes) {
  const std::vector<double> weights = {0.75, 0.25}, near = {std::nextafter(0.75, 1), 0.25};
  kept_blend_by_weights(weights, 8, folder_);
  kept_blend_by_weights(near, 8, folder_);
  EXPECT_EQ(kept_blend_by_weights(weights, 9, folder_).sample.size(), 9u);
  EXPECT_EQ(files(), 3u);
}

TEST_F(KeptBlend, IsMadeAgainWhereItIsDamagedAndBuiltWhereItCannotBeKept) {
  const std::vector<int64_t> sizes = {6, 2};
  kept_blend_exhaustively(sizes, folder_);
  std::string damaged = read_file(file());
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  std::ofstream(file(), std::ios::binary) << damaged;
  {
    test::LogLines log;
    EXPECT_EQ(order(kept_blend_exhaustively(sizes, folder_)), by_hand_);
    ASSERT_EQ(log.lines.size(), 1u);
    EXPECT_NE(log.lines[0].find("is damaged"), std::string::npos) << log.lines[0];
  }
  EXPECT_EQ(order(kept_blend_exhaustively(sizes, {})), by_hand_);
  write_file(dir_ / "a file", "");
  EXPECT_EQ(order(kept_blend_exhaustively(sizes, dir_ / "a file")), by_hand_);
}

// A run keeps three files: the index of the blend and those of its two datasets.
TEST_F(KeptBlend, IsKeptByARun) {
  for (const char* name : {"a", "b"}) {
    IndexedDatasetWriter writer(dir_ / name, IndexedDType::kU16);
    for (int i = 0; i < 30; ++i) writer.add_document(std::vector<int32_t>(9, i), std::vector<int32_t>{9});
    writer.finish();
  }
  const OpenBlend open = open_blend({"3", dir_ / "a", "1", dir_ / "b"});
  const DatasetRequest in_memory{.split = "1,0,0", .seq_length = 4, .samples = {40}};
  DatasetRequest kept = in_memory;
  kept.index_folder = folder_;
  const auto blend = [&](const DatasetRequest& request) {
    return order(std::get<BlendedDataset>(build_datasets(open, request)[0]->source()).index());
  };
  EXPECT_EQ(blend(kept), blend(in_memory));
  EXPECT_EQ(files(), 3u);
  EXPECT_EQ(blend(kept), blend(in_memory));
  EXPECT_EQ(files(), 3u);
}

}  // namespace
}  // namespace megalith
