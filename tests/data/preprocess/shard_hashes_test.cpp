#include "libcore/data/preprocess/shard_hashes.h"

#include <filesystem>
#include <random>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using Pair = std::pair<uint64_t, uint64_t>;

class ShardHashes : public testing::Test {
 protected:
  static HashesOf of(int64_t index, int64_t count) { return {{index, count}, "plan", "options"}; }
  /// Writes random hashes of which many are in several shards, or twice in one. Returns each shard's.
  std::vector<std::deque<ContentHash>> write(int64_t count, size_t each) {
    std::mt19937_64 random(static_cast<uint64_t>(count));
    std::vector<std::deque<ContentHash>> shards(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      auto& hashes = shards[static_cast<size_t>(i)];
      for (size_t n = 0; n < each; ++n) hashes.push_back({random() % 50, 1 + random() % 20});
      write_hashes(folder_, of(i, count), hashes);
    }
    return shards;
  }
  Error refusal(const std::function<void()>& work) const {
    try {
      work();
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorKind::kInternal, "nothing was refused");
  }

  test::TempDir dir_;
  std::string folder_ = dir_ / "hashes";
};

TEST_F(ShardHashes, OfAnEarlierShardAreFound) {
  for (const int64_t count : {1, 2, 7, 300}) {
    std::filesystem::remove_all(folder_);
    const auto shards = write(count, 40);
    const SeenSummary summary = find_seen(folder_);
    EXPECT_EQ(summary.shards, count);
    std::set<Pair> before;
    uint64_t seen = 0, documents = 0;
    for (int64_t i = 0; i < count; ++i) {
      ContentSet set;
      read_seen(folder_, of(i, count), set);
      std::set<Pair> own;
      uint64_t expected = 0;
      for (const ContentHash& hash : shards[static_cast<size_t>(i)]) own.emplace(hash.high, hash.low);
      for (const auto& [high, low] : own) {
        const bool is_there = before.contains({high, low});
        ASSERT_EQ(set.has({high, low}), is_there) << i;
        expected += is_there ? 1 : 0;
      }
      EXPECT_EQ(set.size(), expected);
      seen += expected;
      documents += own.size();
      before.merge(own);
    }
    EXPECT_EQ(summary.seen, seen);
    EXPECT_EQ(summary.documents, documents);
  }
}

TEST_F(ShardHashes, AreKnownWhenTheyAreThere) {
  EXPECT_FALSE(has_hashes(folder_, of(0, 2)));
  write(2, 3);
  EXPECT_TRUE(has_hashes(folder_, of(0, 2)));
  HashesOf other = of(0, 2);
  other.plan = "another";
  EXPECT_FALSE(has_hashes(folder_, other));
}

TEST_F(ShardHashes, RefuseWhatIsMissingOrOfAnotherRun) {
  EXPECT_EQ(refusal([&] { find_seen(folder_); }).kind(), ErrorKind::kNoInput);
  write(5, 3);
  std::filesystem::remove(folder_ + "/shard-00001-of-00005.hashes.json");
  std::filesystem::remove(folder_ + "/shard-00003-of-00005.hashes");
  EXPECT_NE(std::string(refusal([&] { find_seen(folder_); }).what())
                .find("the hashes of 2 of 5 shards are missing: 1,3;"),
            std::string::npos);
  write(5, 3);
  write_hashes(folder_, {{2, 5}, "plan", "others"}, {});
  EXPECT_NE(
      std::string(refusal([&] { find_seen(folder_); }).what()).find("is of a run with other options than"),
      std::string::npos);
  write_hashes(folder_, of(0, 4), {});
  EXPECT_NE(
      std::string(refusal([&] { find_seen(folder_); }).what()).find("holds hashes of 4 and of 5 shards"),
      std::string::npos);
  ContentSet set;
  const Error unread = refusal([&] { read_seen(folder_, of(0, 5), set); });
  EXPECT_EQ(unread.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(unread.what()).find("has no shard-00000-of-00005.seen; give --dedup-write"),
            std::string::npos)
      << unread.what();
}

TEST_F(ShardHashes, RefuseWhatWasChanged) {
  for (const size_t at : {0U, 17U, 31U}) {
    write(2, 3);
    const std::string path = folder_ + "/shard-00001-of-00002.hashes";
    std::string bytes = read_file(path);
    bytes[at] = static_cast<char>(bytes[at] ^ 64);
    write_file(path, bytes);
    EXPECT_NE(std::string(refusal([&] { find_seen(folder_); }).what())
                  .find("its hashes are not those that were written"),
              std::string::npos)
        << at;
    write_file(path, bytes.substr(1));
    EXPECT_NE(
        std::string(refusal([&] { find_seen(folder_); }).what()).find("was changed after it was written"),
        std::string::npos);
    std::filesystem::remove_all(folder_);
  }
}

}  // namespace
}  // namespace megalith
