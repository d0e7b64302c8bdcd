#include "libcore/data/shards/shard_plan.h"

#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/io/parquet/parquet_records.h"
#include "tests/data/shards/member_files.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// Lines of many lengths, each with its number; some end in \r\n.
std::string lines(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i)
    text += concat("{\"n\":", i, ",\"text\":\"", std::string(static_cast<size_t>(i * 37 % 211), 'x'), "\"}",
                   i % 5 == 0 ? "\r\n" : "\n");
  return text;
}

/// A folder with files of every kind that a plan tells apart.
class ShardPlans : public testing::Test {
 protected:
  ShardPlans() {
    write("a.jsonl", lines(0, 300));
    write("b.jsonl", "");
    write("c.json", "[" + lines(300, 1) + "," + lines(301, 1) + "]");
    write("d.zst", test::seekable_zstd(lines(302, 200), 1000));
    write("e.gz", test::bgzf(lines(502, 200), 700));
    write("f.jsonl", lines(702, 100));
    EXPECT_EQ(test::run_command("gzip -c " + dir_ / "f.jsonl" + " > " + dir_ / "f.gz").code, 0);
    fs::remove(dir_ / "f.jsonl");
    fs::copy_file(test::test_data("io/parquet/goldens/numbers.parquet"), dir_ / "g.parquet");
    for (const char* name : {"a.jsonl", "b.jsonl", "c.json", "d.zst", "e.gz", "f.gz", "g.parquet"})
      files_.push_back({dir_ / name, file_size(dir_ / name)});
  }
  void write(const std::string& name, const std::string& text) const { write_file(dir_ / name, text); }

  /// Each line that the shard reads, in order.
  std::vector<std::string> lines_of(const ShardPlan& plan, int64_t index) const {
    std::vector<std::string> all;
    for (const ShardPart& part : plan.parts(index)) {
      const auto reader = open_corpus(files_[part.file].path, {}, {}, nullptr, {}, part.part);
      for (LineBatch batch; reader->next(batch, [](size_t) {});)
        for (size_t i = 0; i < batch.lines(); ++i)
          all.emplace_back(batch.line(i).data(), batch.line(i).size());
    }
    return all;
  }
  std::vector<std::string> lines_of_all(const ShardPlan& plan) const {
    std::vector<std::string> all;
    for (int64_t i = 0; i < plan.count(); ++i)
      for (std::string& line : lines_of(plan, i)) all.push_back(std::move(line));
    return all;
  }

  test::TempDir dir_;
  std::vector<PlannedFile> files_;
};

TEST_F(ShardPlans, GiveEachLineToOneShardInOrder) {
  const std::vector<std::string> whole = lines_of_all(ShardPlan(files_, TextUnit::kNone, 1, ShardBy::kBytes));
  ASSERT_EQ(whole.size(), 952U);
  for (const ShardBy by : {ShardBy::kBytes, ShardBy::kFiles})
    for (const int64_t count : {1, 2, 3, 7, 64, 1000, 5000}) {
      const ShardPlan plan(files_, TextUnit::kNone, count, by);
      ASSERT_EQ(lines_of_all(plan), whole) << count;
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(plan.edge(i), ShardPlan(files_, TextUnit::kNone, count, by).edge(i));
    }
}

TEST_F(ShardPlans, DivideFilesThatCanBeCut) {
  const auto most = [&](const std::string& path, int64_t count) {
    const ShardPlan plan({{path, file_size(path)}}, TextUnit::kNone, count, ShardBy::kBytes);
    uint64_t largest = 0;
    for (int64_t i = 0; i < count; ++i)
      for (const ShardPart& part : plan.parts(i)) largest = std::max(largest, part.bytes);
    return largest;
  };
  EXPECT_LT(most(dir_ / "a.jsonl", 10), file_size(dir_ / "a.jsonl") / 10 + 300) << "one line more";
  EXPECT_LT(most(dir_ / "d.zst", 4), file_size(dir_ / "d.zst") / 4 + 1100) << "one frame more";
  EXPECT_LT(most(dir_ / "e.gz", 4), file_size(dir_ / "e.gz") / 4 + 800) << "one block more";
  EXPECT_EQ(most(dir_ / "f.gz", 4), file_size(dir_ / "f.gz")) << "whole";
  EXPECT_LT(most(dir_ / "g.parquet", 4), file_size(dir_ / "g.parquet") / 2) << "two of eight row groups";
  EXPECT_EQ(most(dir_ / "c.json", 4), file_size(dir_ / "c.json")) << "whole";
}

TEST_F(ShardPlans, AreTheSameForTheSameFilesElsewhere) {
  const ShardPlan here(files_, TextUnit::kNone, 7, ShardBy::kBytes);
  const test::TempDir other;
  fs::create_directory(other / "deeper");
  std::vector<PlannedFile> there;
  for (const PlannedFile& file : files_) {
    there.push_back({other / ("deeper/" + fs::path(file.path).filename().string()), file.size});
    fs::copy_file(file.path, there.back().path);
  }
  const ShardPlan same(there, TextUnit::kNone, 7, ShardBy::kBytes);
  EXPECT_EQ(same.digest(), here.digest());
  for (int64_t i = 0; i <= 7; ++i) EXPECT_EQ(same.edge(i), here.edge(i));
  for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(same.content(same.parts(i)), here.content(here.parts(i)));
}

TEST_F(ShardPlans, DifferByWhatTheyDependOn) {
  const std::string digest = ShardPlan(files_, TextUnit::kNone, 7, ShardBy::kBytes).digest();
  EXPECT_NE(ShardPlan(files_, TextUnit::kNone, 8, ShardBy::kBytes).digest(), digest);
  EXPECT_NE(ShardPlan(files_, TextUnit::kNone, 7, ShardBy::kFiles).digest(), digest);
  EXPECT_NE(ShardPlan(files_, TextUnit::kParagraph, 7, ShardBy::kBytes).digest(), digest);
  std::vector<PlannedFile> others = files_;
  ++others[3].size;
  EXPECT_NE(ShardPlan(others, TextUnit::kNone, 7, ShardBy::kBytes).digest(), digest);
  others = files_;
  others[0].path += "2";
  EXPECT_NE(ShardPlan(others, TextUnit::kNone, 7, ShardBy::kBytes).digest(), digest);
}

// The sizes are the same, so that the digest is, too.
TEST_F(ShardPlans, SeeThatTheBytesAtACutChanged) {
  const ShardPlan plan({files_[0]}, TextUnit::kNone, 2, ShardBy::kBytes);
  const ShardEdge edge = plan.edge(1);
  const std::string content = plan.content(plan.parts(1));
  std::string text = read_file(dir_ / "a.jsonl");
  text[edge.place.at + 20] ^= 1;
  write("a.jsonl", text);
  EXPECT_NE(plan.edge(1).hash, edge.hash);
  EXPECT_NE(plan.content(plan.parts(1)), content);
}

// A file that is gone is not opened again.
TEST_F(ShardPlans, FindTheCutsOfAShardOnce) {
  const ShardPlan plan({files_[0]}, TextUnit::kNone, 3, ShardBy::kBytes);
  const StreamPlace begin = plan.edge(1).place, end = plan.edge(2).place;
  fs::remove(dir_ / "a.jsonl");
  const std::vector<ShardPart> parts = plan.parts(1);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].part.begin, begin);
  EXPECT_EQ(parts[0].part.end, end);
}

TEST(ShardPlan, GivesOneLineToOneShard) {
  const test::TempDir dir;
  write_file(dir / "a", "one line");
  const ShardPlan plan({{dir / "a", 8}}, TextUnit::kNone, 20, ShardBy::kBytes);
  uint64_t parts = 0, bytes = 0;
  for (int64_t i = 0; i < 20; ++i)
    for (const ShardPart& part : plan.parts(i)) ++parts, bytes += part.bytes;
  EXPECT_EQ(parts, 1U);
  EXPECT_EQ(bytes, 8U);
  EXPECT_EQ(ShardPlan({}, TextUnit::kNone, 3, ShardBy::kBytes).parts(1).size(), 0U);
}

}  // namespace
}  // namespace megalith
