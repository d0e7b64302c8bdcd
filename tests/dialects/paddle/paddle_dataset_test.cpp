// The arrays of the test were written by numpy: tools/golden/make_paddle_dataset.py.
#include "libcore/dialects/paddle/paddle_dataset.h"

#include <chrono>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"
#include "tests/support/torch_bytes.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

class PaddleDataset : public testing::Test {
 protected:
  PaddleDataset() { fs::copy(test::test_data("train/goldens/paddle"), dir_ / "data"); }
  std::string refusal(const std::string& cache = "") const {
    try {
      dataset_of_folder(dir_ / "data", cache);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  /// Whether `prefix` is a pair in `folder` that was created from data/corpus_* or a copy of it. Does not
  /// check the hash.
  static bool is_made_in(const std::string& folder, const std::string& prefix) {
    return prefix.starts_with(folder + "/corpus.from_npy-") && file_exists(prefix + ".bin") &&
           file_exists(prefix + ".idx");
  }
  static int32_t first_id(const std::string& prefix) {
    const IndexedDataset data(prefix);
    std::vector<int32_t> ids(static_cast<size_t>(data.sequence_length(0)));
    data.sequence(0).copy_to(ids.data());
    return ids.front();
  }
  /// Waits until the file system's clock has advanced, which may take some milliseconds.
  void wait_for_the_clock() const {
    const auto now = [&] {
      write_file(dir_ / "clock", "");
      return fs::last_write_time(dir_ / "clock");
    };
    for (const auto begin = now(); now() == begin;) {
    }
  }
  /// Replaces the array by another one of the same size, with the first id `id` and the date `date`.
  void replace_ids(const std::string& folder, char id, fs::file_time_type date) const {
    const std::string path = folder + "/corpus_ids.npy";
    std::string ids = read_file(path);
    ids[ids.size() - size_t{2} * 45] = id;
    write_file(path, ids);
    fs::last_write_time(path, date);
  }
  test::TempDir dir_;
  test::LogLines log_;
};

TEST_F(PaddleDataset, ReadsNumpysArrays) {
  const std::string prefix = dataset_of_folder(dir_ / "data", "");
  EXPECT_TRUE(is_made_in(dir_ / "data", prefix)) << prefix;
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

// numpy checks only the members that it reads. We check all, because a damaged one is a sign that the disk
// damages files.
TEST_F(PaddleDataset, ComparesTheChecksumOfMembersThatItDoesNotUse) {
  const std::string path = dir_ / "data/corpus_idx.npz", lens = read_file(path);
  const std::string member = lens.substr(lens.find("\x93NUMPY"), 128 + 4 * sizeof(int32_t));
  for (const uint32_t error : {0U, 1U}) {
    write_file(path, test::zip_of({{.name = "lens.npy", .bytes = member},
                                   {.name = "sents.npy", .bytes = member, .crc_error = error}}));
    EXPECT_EQ(refusal(dir_ / "cache").empty(), error == 0) << refusal(dir_ / "cache");
  }
}

TEST_F(PaddleDataset, MakesThePairOnceAndInTheCacheWhereThereIsOne) {
  const std::string cached = dataset_of_folder(dir_ / "data", dir_ / "cache");
  EXPECT_TRUE(is_made_in(dir_ / "cache", cached)) << cached;
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "data"), {}), 2);
  const size_t lines = log_.lines.size();
  EXPECT_EQ(dataset_of_folder(dir_ / "data", dir_ / "cache"), cached);
  EXPECT_EQ(log_.lines.size(), lines);  // nothing is logged, because the pair was reused
  const std::string beside = dataset_of_folder(dir_ / "data", "");
  EXPECT_TRUE(is_made_in(dir_ / "data", beside)) << beside;
  EXPECT_EQ(dataset_of_folder(dir_ / "data", ""), beside);  // the pair does not count as a second dataset
}

TEST_F(PaddleDataset, TouchesNoPairOfTheUsers) {
  for (const char* folder : {"data", "cache"}) {
    fs::create_directories(dir_ / folder);
    for (const char* end : {"/corpus.bin", "/corpus.idx"})
      write_file(dir_ / (folder + std::string(end)), "the user's");
  }
  const auto hour = std::chrono::hours(1);
  for (const auto age : {hour, -hour}) {  // one pair is older than the arrays, one newer
    fs::last_write_time(dir_ / "data/corpus.idx", fs::file_time_type::clock::now() - age);
    for (const std::string& cache : {std::string(), dir_ / "cache"}) {
      EXPECT_NE(refusal(cache).find("holds 2 datasets"), std::string::npos) << refusal(cache);
      EXPECT_NE(refusal(cache).find("data/corpus.idx, "), std::string::npos) << refusal(cache);
      EXPECT_NE(refusal(cache).find("data/corpus_ids.npy)"), std::string::npos) << refusal(cache);
    }
  }
  for (const char* end : {"/corpus.bin", "/corpus.idx"}) {
    EXPECT_EQ(read_file(dir_ / ("data" + std::string(end))), "the user's");
    fs::remove(dir_ / ("data" + std::string(end)));
  }
  EXPECT_EQ(first_id(dataset_of_folder(dir_ / "data", dir_ / "cache")), 5);
  for (const char* end : {"/corpus.bin", "/corpus.idx"})
    EXPECT_EQ(read_file(dir_ / ("cache" + std::string(end))), "the user's");
}

TEST_F(PaddleDataset, KeepsApartTwoFoldersWithOneName) {
  fs::copy(dir_ / "data", dir_ / "other");
  replace_ids(dir_ / "other", 9, fs::last_write_time(dir_ / "data/corpus_ids.npy"));
  const std::string cache = dir_ / "cache";
  EXPECT_EQ(first_id(dataset_of_folder(dir_ / "data", cache)), 5);
  EXPECT_EQ(first_id(dataset_of_folder(dir_ / "other", cache)), 9);
  EXPECT_EQ(first_id(dataset_of_folder(dir_ / "data", cache)), 5);
}

// `cp -p` may replace the arrays by another corpus with an older or even the same date. The pair must still
// be created anew.
TEST_F(PaddleDataset, MakesAnotherPairOfACorpusWithAnOldDate) {
  const auto date = fs::last_write_time(dir_ / "data/corpus_ids.npy");
  EXPECT_EQ(first_id(dataset_of_folder(dir_ / "data", "")), 5);
  replace_ids(dir_ / "data", 9, date - std::chrono::hours(1));
  EXPECT_EQ(first_id(dataset_of_folder(dir_ / "data", "")), 9);
  wait_for_the_clock();
  replace_ids(dir_ / "data", 11, date - std::chrono::hours(1));
  EXPECT_EQ(first_id(dataset_of_folder(dir_ / "data", "")), 11);
}

TEST_F(PaddleDataset, MakesThePairOfASourceOfTomorrowsDate) {
  fs::last_write_time(dir_ / "data/corpus_ids.npy",
                      fs::file_time_type::clock::now() + std::chrono::hours(24));
  const std::string made = dataset_of_folder(dir_ / "data", "");
  const size_t lines = log_.lines.size();
  EXPECT_EQ(dataset_of_folder(dir_ / "data", ""), made);
  EXPECT_EQ(log_.lines.size(), lines);
}

TEST_F(PaddleDataset, TakesAPairAsItIs) {
  const test::TempDir other;
  const std::string made = dataset_of_folder(dir_ / "data", other / "pair");
  EXPECT_EQ(dataset_of_folder(other / "pair", ""), made);
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
  EXPECT_NE(refusal().find("is not a .npy file"), std::string::npos) << refusal();
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
