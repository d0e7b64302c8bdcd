#include "libcore/train/run/same_data.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 3;

/// Three ranks, each with its own copy of a dataset of `documents` documents of 100 tokens.
class SameData : public testing::Test {
 protected:
  void make(int documents) const {
    fs::create_directories(dir_ / "0");
    IndexedDatasetWriter writer(dir_ / "0/set", IndexedDType::kU16);
    std::vector<int32_t> ids(100);
    for (int i = 0; i < documents; ++i) {
      for (size_t k = 0; k < ids.size(); ++k) ids[k] = (i * 31 + static_cast<int>(k)) % 5000;
      const int32_t length = static_cast<int32_t>(ids.size());
      writer.add_document(ids, {&length, 1});
    }
    writer.finish();
    describe("0", hex64(xxh64(read_file(dir_ / "0/set.bin"))));
    for (const char* rank : {"1", "2"}) fs::copy(dir_ / "0", dir_ / rank);
  }
  /// Writes a sidecar with this hash of the .bin.
  void describe(const std::string& rank, const std::string& hash) const {
    const std::string prefix = dir_ / rank + "/set";
    Sidecar sidecar;
    sidecar.bin_parts = {{fs::file_size(dir_ / "0/set.bin"), hash}};
    make_sidecar(prefix, sidecar)->commit();
  }
  /// Changes a file of rank 2 without changing its size.
  void change(const std::string& name, const std::function<void(std::string&)>& how) const {
    const std::string path = dir_ / "2/set" + name;
    std::string bytes = read_file(path);
    const size_t size = bytes.size();
    how(bytes);
    ASSERT_EQ(bytes.size(), size);
    std::ofstream(path, std::ios::binary) << bytes;
  }
  /// The message of the comparison's error; empty if it throws none. `machines`: the machine of each rank, as
  /// a letter.
  std::string refusal(const std::string& machines = "abc", const RunData& more = {}) const {
    std::vector<RankPlace> places;
    for (const char machine : machines) places.push_back({.machine = std::string(1, machine)});
    try {
      run_thread_ranks(kRanks, {}, [&](Communicator& world) {
        const IndexedDataset data(dir_ / std::to_string(world.rank()) + "/set");
        RunData mine = more;
        if (world.rank() < 2) mine.texts = "";
        mine.datasets = {&data};
        require_same_data(world, places, std::chrono::seconds(20), mine);
      });
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
      return error.what();
    }
    return {};
  }
  void expect_refused(const std::string& part) const {
    for (const char* machines : {"abc", "aaa", "abb"}) {
      const std::string text = refusal(machines);
      EXPECT_NE(text.find(part), std::string::npos) << machines << ": " << text;
      EXPECT_NE(text.find("on rank 2 than on rank 0; give every machine the same files"), std::string::npos)
          << text;
    }
  }
  test::TempDir dir_;
};

TEST_F(SameData, IsTakenFromCopiesAndFromOneFile) {
  for (const int documents : {1, 3000}) {
    make(documents);
    for (const char* machines : {"abc", "aaa", "abb"}) EXPECT_EQ(refusal(machines), "");
    fs::remove_all(dir_ / "1");
    fs::create_directory_symlink(dir_ / "0", dir_ / "1");
    EXPECT_EQ(refusal("aab"), "");
    for (const char* rank : {"0", "1", "2"}) fs::remove_all(dir_ / rank);
  }
}

// Every byte of a small .bin is compared, so a changed id is always found.
TEST_F(SameData, SeesOtherIdsUnderTheSameIndex) {
  make(100);
  const size_t bytes = fs::file_size(dir_ / "0/set.bin");
  for (const size_t at : {size_t{0}, bytes / 2, bytes - 1}) {
    change(".bin", [&](std::string& bin) { bin[at] = static_cast<char>(bin[at] ^ 1); });
    expect_refused(".bin has other contents in the 4096 bytes from ");
    change(".bin", [&](std::string& bin) { bin[at] = static_cast<char>(bin[at] ^ 1); });
  }
  EXPECT_EQ(refusal(), "");
}

// Only samples of a large .bin are compared. The test changes ids, and the order of documents; sidecar and
// .idx stay the same.
TEST_F(SameData, SamplesALargeFileAnew) {
  make(3000);
  const std::string original = read_file(dir_ / "2/set.bin");
  change(".bin", [](std::string& bin) {
    for (size_t i = 0; i < bin.size(); i += 200) bin[i] = static_cast<char>(bin[i] ^ 1);
  });
  expect_refused(".bin has other contents");
  change(".bin", [&](std::string& bin) {
    for (size_t i = 0; i < original.size(); i += 200)
      bin.replace(i, 200, original, original.size() - i - 200, 200);
  });
  expect_refused(".bin has other contents");
  // A change of a fiftieth of the file is found in most runs, because each run draws other blocks.
  int found = 0;
  for (int run = 0; run < 8; ++run) {
    change(".bin", [&](std::string& bin) {
      bin = original;
      for (size_t i = 0; i < bin.size() / 50; ++i) bin[i] = 0x7F;
    });
    found += !refusal().empty();
  }
  EXPECT_GT(found, 0);
}

TEST_F(SameData, HasADigestOfIdsAndDocuments) {
  const auto digest = [&](const std::string& rank) {
    DataConfig data;
    data.data_path = {dir_ / rank + "/set"};
    return data_digests(data).dump();
  };
  for (const int documents : {30, 3000}) {
    make(documents);
    EXPECT_EQ(digest("0"), digest("1"));
    // A large file is only sampled, so that every block of it changes.
    change(".bin", [](std::string& bin) {
      for (size_t i = 0; i < bin.size(); i += 4096) bin[i] = static_cast<char>(bin[i] ^ 1);
    });
    EXPECT_NE(digest("2"), digest("0"));
    for (const char* rank : {"0", "1", "2"}) fs::remove_all(dir_ / rank);
  }
  const std::vector<int32_t> ids(100, 7);
  for (const int32_t first : {40, 50}) {
    fs::create_directories(dir_ / std::to_string(first));
    IndexedDatasetWriter writer(dir_ / std::to_string(first) + "/set", IndexedDType::kU16);
    const int32_t lengths[] = {first, 100 - first};
    writer.add_document(ids, lengths);
    writer.finish();
  }
  EXPECT_NE(digest("40"), digest("50"));
}

TEST_F(SameData, SeesAnotherSidecarAndTextsAndSizes) {
  make(10);
  describe("2", "0123456789abcdef");
  expect_refused(".json, its sidecar, states other contents of the .bin");
  fs::remove(dir_ / "2/set.json");
  EXPECT_EQ(refusal(), "");  // a rank may lack the sidecar
  EXPECT_NE(refusal("abc", {.datasets = {}, .samples = {}, .texts = "0123"}).find("rank 2 "),
            std::string::npos);
  fs::remove_all(dir_ / "2");
  fs::create_directory(dir_ / "2");
  IndexedDatasetWriter writer(dir_ / "2/set", IndexedDType::kU16);
  const std::vector<int32_t> ids(7, 1);
  const int32_t length = 7;
  writer.add_document(ids, {&length, 1});
  writer.finish();
  EXPECT_NE(refusal().find("rank 0 are 1000 tokens in 10 sequences, those of rank 2 7 tokens in 1 sequences"),
            std::string::npos)
      << refusal();
}

}  // namespace
}  // namespace megalith
