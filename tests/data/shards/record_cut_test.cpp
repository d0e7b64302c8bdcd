#include "libcore/data/shards/record_cut.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/data/shards/member_files.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

/// Where lines begin, apart from the first: behind \n, \r\n and a lone \r.
std::vector<uint64_t> line_begins(const std::string& text) {
  std::vector<uint64_t> begins;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n')))
      begins.push_back(i + 1);
  return begins;
}

std::string random_text(int size, std::string_view letters, unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  for (int i = 0; i < size; ++i) text += letters[random() % letters.size()];
  return text;
}

TEST(RecordBehind, IsTheNextLineOfAPlainFile) {
  const test::TempDir dir;
  for (const std::string& text : {random_text(500, "ab\n", 1), random_text(500, "ab\r\n", 2),
                                  random_text(500, "abcdefg\r", 3), std::string("a")}) {
    write_file(dir / "a", text);
    const std::vector<uint64_t> begins = line_begins(text);
    for (uint64_t from = 0; from <= text.size(); ++from) {
      const auto next = std::upper_bound(begins.begin(), begins.end(), from);
      const StreamPlace wanted{next == begins.end() ? text.size() : *next, 0};
      ASSERT_EQ(record_behind(dir / "a", {from, 0}, TextUnit::kNone), wanted) << from;
    }
  }
}

TEST(RecordBehind, IsFoundBehindManyBlocks) {
  const test::TempDir dir;
  write_file(dir / "a", std::string(1'000'000, 'a') + "\nb\n");
  EXPECT_EQ(record_behind(dir / "a", {5, 0}, TextUnit::kNone), (StreamPlace{1'000'001, 0}));
}

TEST(RecordBehind, CountsDecompressedBytesFromAMember) {
  const test::TempDir dir;
  const std::string text = "first\nsecond\nthird\n";
  write_file(dir / "a.zst", test::seekable_zstd(text, 9));
  const uint64_t frame = test::zstd_frame(text.substr(0, 9)).size();
  EXPECT_EQ(record_behind(dir / "a.zst", {frame, 0}, TextUnit::kNone), (StreamPlace{frame, 4}));
  // the third line ends in the third frame
  EXPECT_EQ(record_behind(dir / "a.zst", {frame, 4}, TextUnit::kNone), (StreamPlace{frame, 10}));
  EXPECT_EQ(record_behind(dir / "a.zst", {2 * frame, 0}, TextUnit::kNone), (StreamPlace{2 * frame, 1}));
}

// No paragraph is divided or lost wherever the file is cut.
TEST(RecordBehind, CutsBetweenParagraphs) {
  const test::TempDir dir;
  const std::string text = random_text(400, "ab\n\n \r", 4);
  write_file(dir / "a", text);
  const auto texts_of = [&](const StreamPart& part) {
    const auto reader = open_records(dir / "a", TextUnit::kParagraph, {}, nullptr, {}, part);
    std::vector<std::string> texts;
    for (LineBatch batch; reader->next(batch, [](size_t) {});)
      for (size_t i = 0; i < batch.lines(); ++i)
        texts.emplace_back(batch.line(i).data(), batch.line(i).size());
    return texts;
  };
  const std::vector<std::string> whole = texts_of({});
  ASSERT_GT(whole.size(), 20U);
  for (uint64_t from = 0; from <= text.size(); ++from) {
    const StreamPlace cut = record_behind(dir / "a", {from, 0}, TextUnit::kParagraph);
    std::vector<std::string> texts = texts_of({.end = cut});
    for (std::string& more : texts_of({.begin = cut})) texts.push_back(std::move(more));
    ASSERT_EQ(texts, whole) << from << ' ' << cut.at;
  }
}

TEST(BeginsWithArray, LooksBehindBlanksAndTheMark) {
  const test::TempDir dir;
  const auto is_array = [&](const std::string& text) {
    write_file(dir / "a", text);
    return begins_with_array(dir / "a");
  };
  EXPECT_TRUE(is_array("[1]"));
  EXPECT_TRUE(is_array("\xef\xbb\xbf \r\n\t[1]"));
  EXPECT_FALSE(is_array("{\"a\":[1]}"));
  EXPECT_FALSE(is_array(""));
}

}  // namespace
}  // namespace megalith
