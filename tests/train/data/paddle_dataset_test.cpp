// The arrays are numpy's: tools/golden/make_paddle_dataset.py.
#include "libcore/train/data/paddle_dataset.h"

#include <chrono>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/io/file.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

class PaddleDataset : public testing::Test {
 protected:
  PaddleDataset() { fs::copy(test::test_data("train/goldens/paddle"), dir_ / "data"); }
  std::string refusal() const {
    try {
      dataset_of_folder(dir_ / "data", "");
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  test::TempDir dir_;
  test::LogLines log_;
};

TEST_F(PaddleDataset, ReadsNumpysArrays) {
  const std::string prefix = dataset_of_folder(dir_ / "data", "");
  EXPECT_EQ(prefix, dir_ / "data/corpus");
  const IndexedDataset data(prefix);
  EXPECT_EQ(data.dtype(), IndexedDType::kU16);
  ASSERT_EQ(data.documents(), 4);
  ASSERT_EQ(data.tokens(), 45);
  const auto document = [&](int64_t i) {
    std::vector<int32_t> ids(static_cast<size_t>(data.sequence_length(i)));
    data.sequence(i).copy_to(ids.data());
    return ids;
  };
  EXPECT_EQ(document(0), (std::vector<int32_t>{5, 6, 7}));
  EXPECT_EQ(document(1), std::vector<int32_t>{});
  EXPECT_EQ(document(2), (std::vector<int32_t>{40000, 1}));
  std::vector<int32_t> last(40);
  std::iota(last.begin(), last.end(), 100);
  EXPECT_EQ(document(3), last);
}

TEST_F(PaddleDataset, MakesThePairOnceAndInTheCacheWhereThereIsOne) {
  EXPECT_EQ(dataset_of_folder(dir_ / "data", dir_ / "cache"), dir_ / "cache/corpus");
  EXPECT_FALSE(file_exists(dir_ / "data/corpus.idx"));
  const size_t lines = log_.lines.size();
  EXPECT_EQ(dataset_of_folder(dir_ / "data", dir_ / "cache"), dir_ / "cache/corpus");
  EXPECT_EQ(log_.lines.size(), lines);  // it was taken as it is
  EXPECT_EQ(dataset_of_folder(dir_ / "data", ""), dir_ / "data/corpus");
  EXPECT_EQ(dataset_of_folder(dir_ / "data", ""), dir_ / "data/corpus");  // the pair is not a second dataset
}

TEST_F(PaddleDataset, MakesThePairOfASourceOfTomorrowsDate) {
  fs::last_write_time(dir_ / "data/corpus_ids.npy",
                      fs::file_time_type::clock::now() + std::chrono::hours(24));
  EXPECT_EQ(dataset_of_folder(dir_ / "data", ""), dir_ / "data/corpus");
}

TEST_F(PaddleDataset, TakesAPairAsItIs) {
  const test::TempDir other;
  dataset_of_folder(dir_ / "data", other / "pair");
  EXPECT_EQ(dataset_of_folder(other / "pair", ""), other / "pair/corpus");
}

TEST_F(PaddleDataset, NamesTheFileThatIsWrong) {
  const std::string ids = read_file(dir_ / "data/corpus_ids.npy");
  write_file(dir_ / "data/corpus_ids.npy", ids.substr(0, ids.size() - 2));
  EXPECT_NE(refusal().find("corpus_ids.npy: has 88 bytes of elements, its header says 45 of 2"),
            std::string::npos)
      << refusal();
  write_file(dir_ / "data/corpus_ids.npy", ids.substr(0, 20));
  EXPECT_NE(refusal().find("ends within its header"), std::string::npos) << refusal();
  write_file(dir_ / "data/corpus_ids.npy", "text");
  EXPECT_NE(refusal().find("is no .npy file"), std::string::npos) << refusal();
  std::string other = ids;
  other.replace(other.find("<u2"), 3, "<f2");
  write_file(dir_ / "data/corpus_ids.npy", other);
  EXPECT_NE(refusal().find("elements of type '<f2'"), std::string::npos) << refusal();
  write_file(dir_ / "data/corpus_ids.npy", ids);
  const std::string lens = read_file(dir_ / "data/corpus_idx.npz");
  write_file(dir_ / "data/corpus_idx.npz", lens.substr(0, lens.size() - 4));
  EXPECT_NE(refusal().find("corpus_idx.npz"), std::string::npos) << refusal();
  fs::remove(dir_ / "data/corpus_idx.npz");
  EXPECT_NE(refusal().find("corpus_idx.npz"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace megalith
