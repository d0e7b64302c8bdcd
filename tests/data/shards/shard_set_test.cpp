#include "libcore/data/shards/shard_set.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

class ShardSets : public testing::Test {
 protected:
  static ShardRecord record(int64_t index, int64_t count) {
    ShardRecord made{.index = index, .count = count, .plan = "plan", .content = "c", .options = "options"};
    made.begin.file = index;
    made.end.file = index + 1;
    made.datasets = {"text_document", "t_document"};
    return made;
  }
  /// Writes the datasets of a shard, under the name of `named`.
  void put(const ShardRecord& record, const Shard& named) const {
    for (const std::string& dataset : record.datasets) {
      const std::string prefix = prefix_ + named.suffix() + "_" + dataset;
      write_file(prefix + ".bin", "");
      write_file(prefix + ".idx", "");
      make_sidecar(prefix, {.shard = record})->commit();
    }
  }
  void put(const ShardRecord& record) const { put(record, {record.index, record.count}); }
  std::string refusal() const {
    try {
      (void)find_shards(prefix_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      return error.what();
    }
    return "none";
  }

  test::TempDir dir_;
  std::string prefix_ = dir_ / "out";
};

TEST_F(ShardSets, TellWhatIsMissing) {
  for (const int64_t index : {0, 1, 4}) put(record(index, 6));
  write_failure(prefix_ + Shard{2, 6}.suffix(), {65, "a bad line"});
  write_failure(prefix_ + Shard{1, 6}.suffix(), {66, "of an attempt before"});
  fs::remove(prefix_ + Shard{4, 6}.suffix() + "_t_document.idx");
  write_file(dir_ / "out-00005-of-00006_text_document.bin", "");       // an attempt that was killed
  write_file(dir_ / "out-2-of-6_text_document.json", "{}");            // another name
  write_file(dir_ / "outer-00003-of-00007_text_document.json", "{}");  // of another prefix
  const ShardSet set = find_shards(prefix_);
  EXPECT_EQ(set.count, 6);
  EXPECT_EQ(set.complete.size(), 2U);
  EXPECT_EQ(set.complete.at(1), record(1, 6));
  EXPECT_EQ(set.missing, (std::vector<int64_t>{3, 4, 5}));
  ASSERT_EQ(set.failed.size(), 1U);
  EXPECT_EQ(set.failed.at(2).code, 65);
  EXPECT_EQ(set.failed.at(2).reason, "a bad line");
}

TEST_F(ShardSets, NeedTheirNumberBeforeOneHasBegun) {
  EXPECT_THROW((void)find_shards(prefix_), Error);
  EXPECT_EQ(find_shards(prefix_, 3).missing, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(find_shards(dir_ / "absent/out", 1).missing, (std::vector<int64_t>{0}));
}

TEST_F(ShardSets, RefuseShardsOfAnotherNumber) {
  put(record(0, 6));
  put(record(3, 7));
  EXPECT_NE(refusal().find("out-00003-of-00007: is not one of 6 shards"), std::string::npos) << refusal();
}

TEST_F(ShardSets, RefuseAShardThatIsThereTwice) {
  put(record(0, 3));
  put(record(0, 3), {2, 3});
  EXPECT_NE(refusal().find("is shard 0 of 3 under the name of another"), std::string::npos) << refusal();
}

// Whatever the order in which the folder names the files, and whichever run was the first.
TEST_F(ShardSets, TellTheRunsOfOtherKeysApart) {
  ShardRecord other = record(0, 1);
  other.datasets = {"s_document"};
  put(other);
  other.datasets = {"z_document"};
  put(other);
  EXPECT_NE(refusal().find("out-00000-of-00001_z_document: is of another run than " + prefix_ +
                           "-00000-of-00001_s"),
            std::string::npos)
      << refusal();
}

// A run with more keys has one dataset left, or not yet more than one there.
TEST_F(ShardSets, TakeTheRunThatIsComplete) {
  ShardRecord whole = record(0, 1);
  put(whole);
  whole.datasets = {"text_document"};
  put(whole);
  EXPECT_EQ(find_shards(prefix_).complete.at(0), whole);
  whole.datasets = {"t_document"};
  put(record(0, 1));
  put(whole);
  EXPECT_EQ(find_shards(prefix_).complete.at(0), whole);
}

TEST_F(ShardSets, RefuseShardsOfOtherInputsOrOptions) {
  put(record(0, 3));
  ShardRecord other = record(1, 3);
  other.plan = "another";
  put(other);
  EXPECT_NE(refusal().find("out-00001-of-00003: is a shard of a run with other inputs than that of"),
            std::string::npos)
      << refusal();
  other = record(1, 3);
  other.options = "another";
  put(other);
  EXPECT_NE(refusal().find("with other options than"), std::string::npos) << refusal();
}

TEST_F(ShardSets, RefuseNeighboursThatDoNotMeet) {
  put(record(0, 3));
  ShardRecord other = record(1, 3);
  other.begin.hash = 7;
  put(other);
  EXPECT_NE(refusal().find("out-00001-of-00003: does not begin where"), std::string::npos) << refusal();
}

TEST_F(ShardSets, RefuseADamagedReason) {
  write_failure(prefix_ + Shard{0, 2}.suffix(), {65, "a bad line"});
  std::string text = read_file(failure_path(prefix_ + Shard{0, 2}.suffix()));
  text.replace(text.find("bad"), 3, "sad");
  write_file(failure_path(prefix_ + Shard{0, 2}.suffix()), text);
  EXPECT_NE(refusal().find("its checksum does not match"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace megalith
