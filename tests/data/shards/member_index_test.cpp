#include "libcore/data/shards/member_index.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/data/shards/member_files.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

/// Compares at_or_behind() with the list of where the members begin, at each byte.
void expect_begins(const std::string& path, const std::vector<uint64_t>& begins) {
  const auto index = MemberIndex::of(path);
  ASSERT_TRUE(index.has_value());
  const uint64_t size = read_file(path).size();
  uint64_t next = 0;
  for (uint64_t byte = 0; byte <= size; byte += byte < 100 ? 1 : 7) {
    while (next < begins.size() && begins[next] < byte) ++next;
    ASSERT_EQ(index->at_or_behind(byte), next < begins.size() ? begins[next] : size) << byte;
  }
}

TEST(MemberIndex, FindsTheFramesOfASeekTable) {
  const test::TempDir dir;
  for (const bool checksums : {false, true}) {
    const std::string text(1000, 'a');
    write_file(dir / "a.zst", test::seekable_zstd(text, 300, checksums));
    const uint64_t frame = test::zstd_frame(text.substr(0, 300)).size();
    expect_begins(dir / "a.zst", {0, frame, 2 * frame, 3 * frame});
  }
}

TEST(MemberIndex, FindsTheBlocksOfBgzf) {
  const test::TempDir dir;
  const std::string text(2500, 'b');
  write_file(dir / "a.gz", test::bgzf(text, 1000));
  const uint64_t block = test::bgzf_block(text.substr(0, 1000)).size(),
                 last = test::bgzf_block(text.substr(0, 500)).size();
  expect_begins(dir / "a.gz", {0, block, 2 * block, 2 * block + last});
}

// A text that holds a block is not taken for one: no others follow it.
TEST(MemberIndex, IsNotMisledByWhatLooksLikeABlock) {
  const test::TempDir dir;
  const std::string text = std::string(400, 'x') + test::bgzf_block("lure") + std::string(400, 'y');
  write_file(dir / "a.gz", test::bgzf(text, 2000));
  expect_begins(dir / "a.gz", {0, test::bgzf_block(text).size()});
}

TEST(MemberIndex, IsNotThereForOtherFiles) {
  const test::TempDir dir;
  const std::string frame = test::zstd_frame("text"), seekable = test::seekable_zstd("texttext", 4);
  EXPECT_EQ(test::run_command("echo text | gzip > " + dir / "gzip").code, 0);
  write_file(dir / "frames", frame + frame);
  write_file(dir / "joined", seekable + seekable);  // its table describes the second half only
  write_file(dir / "plain", "text\n");
  write_file(dir / "empty", "");
  for (const char* name : {"gzip", "frames", "joined", "plain", "empty"})
    EXPECT_FALSE(MemberIndex::of(dir / name).has_value()) << name;
}

TEST(MemberIndex, RefusesBgzfWithoutBlocks) {
  const test::TempDir dir;
  write_file(dir / "a.gz", test::bgzf("text", 4) + std::string(200'000, 'z'));
  const auto index = MemberIndex::of(dir / "a.gz");
  ASSERT_TRUE(index.has_value());
  try {
    (void)index->at_or_behind(1000);
    ADD_FAILURE() << "found a block";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("no block of BGZF begins in the 64 KiB behind byte 1000"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace megalith
