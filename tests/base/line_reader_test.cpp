#include "libcore/base/line_reader.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

const auto kNoGrowth = [](size_t) {};

struct Read {
  std::vector<std::string> lines, raw;
  std::vector<size_t> chunk_lines, chunk_bytes;
};

Read read_lines(const std::string& contents, LineLimits limits = {}) {
  const test::TempDir dir;
  write_file(dir / "in", contents);
  LineReader reader(dir / "in", limits);
  LineChunk chunk;
  Read read;
  while (reader.next(chunk, kNoGrowth)) {
    for (size_t i = 0; i < chunk.lines(); ++i) {
      const std::span<char> line = chunk.line(i);
      read.lines.emplace_back(line.begin(), line.end());
      read.raw.emplace_back(chunk.raw_line(i));
    }
    read.chunk_lines.push_back(chunk.lines());
    read.chunk_bytes.push_back(chunk.bytes());
  }
  return read;
}

using Lines = std::vector<std::string>;

TEST(LineReader, EndsLinesAsPythonsTextFiles) {
  EXPECT_EQ(read_lines("a\nb\r\nc\rd").lines, (Lines{"a", "b", "c", "d"}));
  EXPECT_EQ(read_lines("a\nb\r\nc\rd").raw, (Lines{"a\n", "b\r\n", "c\r", "d"}));
  EXPECT_EQ(read_lines("\n\r\r\n\n\r").lines, (Lines{"", "", "", "", ""}));
  EXPECT_EQ(read_lines("a\x0b\x0c\x1c\xc2\x85\xe2\x80\xa8z").lines.size(), 1U);  // only \n and \r end lines
  EXPECT_EQ(read_lines("").lines, Lines{});
  EXPECT_EQ(read_lines("a\n").lines, Lines{"a"});
  EXPECT_EQ(read_lines("a\r").lines, Lines{"a"});
}

TEST(LineReader, TakesAByteOrderMarkOnlyFromTheBeginning) {
  const test::TempDir dir;
  write_file(dir / "in", "\xEF\xBB\xBF{1}\n\xEF\xBB\xBF{2}\n");
  LineReader reader(dir / "in", {.lines = 1});
  LineChunk chunk;
  ASSERT_TRUE(reader.next(chunk, kNoGrowth));
  EXPECT_EQ(chunk.line(0).size(), 3U);
  EXPECT_EQ(chunk.skipped(0), 3U);
  EXPECT_EQ(chunk.raw_line(0), "\xEF\xBB\xBF{1}\n");
  ASSERT_TRUE(reader.next(chunk, kNoGrowth));
  EXPECT_EQ(chunk.line(0).size(), 6U);
  EXPECT_EQ(chunk.skipped(0), 0U);
}

// The expected lines come from a byte-by-byte loop; the window ends at every place of a line end.
TEST(LineReader, AgreesWithANaiveLoopWhereverTheWindowEnds) {
  std::mt19937 random(7);
  for (const size_t length : {262143U, 262144U, 262145U, 524290U}) {
    std::string contents;
    while (contents.size() < length) contents += "x\n\r"[random() % 3];
    for (const char* end : {"\r", "\r\n", "\n", "a", "\r\r"}) {
      const std::string text = contents.substr(0, length - 1) + end;
      Lines expected;
      size_t begin = 0;
      for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'))) {
          expected.push_back(text.substr(begin, i + 1 - begin));
          begin = i + 1;
        }
      }
      if (begin < text.size()) expected.push_back(text.substr(begin));
      EXPECT_EQ(read_lines(text, {.bytes = 1000, .lines = 100}).raw, expected);
      EXPECT_EQ(read_lines(text, {.bytes = 1 << 20, .lines = 1 << 20}).raw, expected);
    }
  }
}

TEST(LineReader, ClosesAChunkAtItsLimits) {
  const std::string text = "123456789\n123456789\n123456789\n1\n2\n";
  EXPECT_EQ(read_lines(text, {.bytes = 20, .lines = 100}).chunk_bytes, (std::vector<size_t>{20, 14}));
  EXPECT_EQ(read_lines(text, {.bytes = 11, .lines = 100}).chunk_bytes, (std::vector<size_t>{20, 12, 2}));
  EXPECT_EQ(read_lines(text, {.bytes = 1000, .lines = 2}).chunk_lines, (std::vector<size_t>{2, 2, 1}));
  EXPECT_EQ(read_lines(text, {.bytes = 1, .lines = 1}).chunk_lines, (std::vector<size_t>{1, 1, 1, 1, 1}));
}

TEST(LineReader, AsksBeforeALongLineGrows) {
  const test::TempDir dir;
  write_file(dir / "in", "short\n" + std::string(2'000'000, 'x') + "\nshort\n");
  LineReader reader(dir / "in", {.bytes = 1000, .lines = 1});
  LineChunk chunk;
  std::vector<size_t> asked;
  const auto grow = [&](size_t bytes) {
    EXPECT_LT(chunk.bytes(), bytes);
    asked.push_back(bytes);
  };
  ASSERT_TRUE(reader.next(chunk, grow));
  EXPECT_TRUE(asked.empty());
  ASSERT_TRUE(reader.next(chunk, grow));
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked.back(), 2'000'001U);
  EXPECT_EQ(chunk.line(0).size(), 2'000'000U);
  ASSERT_TRUE(reader.next(chunk, grow));
  EXPECT_FALSE(reader.next(chunk, grow));
}

}  // namespace
}  // namespace megalith
