#include "libcore/io/streams/line_reader.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

const auto kNoGrowth = [](size_t) {};

struct Read {
  std::vector<std::string> lines, raw;
  std::vector<size_t> batch_lines, batch_bytes;
};

Read read_lines(const std::string& contents, LineLimits limits = {}) {
  const test::TempDir dir;
  write_file(dir / "in", contents);
  LineReader reader(dir / "in", limits);
  LineBatch batch;
  Read read;
  while (reader.next(batch, kNoGrowth)) {
    for (size_t i = 0; i < batch.lines(); ++i) {
      const std::span<char> line = batch.line(i);
      read.lines.emplace_back(line.begin(), line.end());
      read.raw.emplace_back(batch.raw_line(i));
    }
    read.batch_lines.push_back(batch.lines());
    read.batch_bytes.push_back(batch.bytes());
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

TEST(LineReader, RefusesALineThatIsTooLong) {
  constexpr LineLimits kLimits{.refused = 2'000'000};
  const std::string many(3'000'000, 'x');
  for (const auto& [contents, said] :
       {std::pair{"a\nb\n" + many, ":3: the line has more than 2000000 bytes"},
        {"a\r\n" + many + "\nb", ":2: the line has more than 2000000 bytes"},
        {"[1,\n\"" + many + "\"]", ": the element has more than 2000000 bytes"}})
    for (const size_t kept : {0, 16})  // 16: even if little of the line is kept
      try {
        LineLimits limits = kLimits;
        limits.longest = kept;
        read_lines(contents, limits);
        ADD_FAILURE() << said;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData);
        EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
      }
  std::string lines;
  while (lines.size() < 3'000'000) lines += std::string(999, 'x') + '\n';
  EXPECT_EQ(read_lines(lines, {.bytes = 4'000'000, .refused = 2'000'000}).lines.size(), 3000U);
}

// A line longer than LineLimits::longest keeps little more than that many bytes, and its line end. The lines
// around it must be unchanged.
TEST(LineReader, KeepsLittleMoreThanTheLimitOfALongLine) {
  constexpr size_t kLimit = 1000, kLong = 3'000'000, kMax = size_t{3} << 19;
  for (const std::string end : {"\n", "\r\n", "\r", ""}) {
    const Read read = read_lines("a" + end + std::string(kLong, 'x') + end + "b" + end, {.longest = kLimit});
    if (end.empty()) continue;
    ASSERT_EQ(read.lines.size(), 3U);
    EXPECT_EQ(read.lines[0], "a");
    EXPECT_EQ(read.lines[2], "b");
    EXPECT_GT(read.lines[1].size(), kLimit);
    EXPECT_LT(read.lines[1].size(), kMax);
    EXPECT_TRUE(read.raw[1].ends_with("x" + end));
  }
  const std::string element = "\"" + std::string(kLong, ']') + "\"";
  const Read array = read_lines("[1," + element + ",\n2]", {.longest = kLimit});
  ASSERT_EQ(array.lines.size(), 3U);
  EXPECT_EQ(array.lines[2], "2");
  EXPECT_GT(array.lines[1].size(), kLimit);
  EXPECT_LT(array.lines[1].size(), kMax);
  EXPECT_EQ(read_lines(std::string(kLimit, 'x') + "\n", {.longest = kLimit}).lines[0].size(), kLimit);
  EXPECT_LT(read_lines(std::string(kLong, 'x'), {.longest = kLimit}).lines[0].size(), kMax);
}

TEST(LineBatch, LendsItsMemory) {
  const test::TempDir dir;
  write_file(dir / "in", std::string(300000, 'a') + "\nb\nc\n");
  LineReader reader(dir / "in", {.lines = 2});
  LineBatch one, other;
  ASSERT_TRUE(reader.next(one, kNoGrowth));
  const size_t capacity = one.capacity();
  EXPECT_GE(capacity, 300000U);
  other.use_memory(one.take_memory());
  EXPECT_EQ(one.capacity(), 0U);
  EXPECT_EQ(one.lines(), 2U);
  EXPECT_EQ(one.end().bytes, 300003U);
  EXPECT_EQ(other.capacity(), capacity);
  ASSERT_TRUE(reader.next(other, kNoGrowth));
  EXPECT_EQ(other.raw_line(0), "c\n");
  EXPECT_EQ(other.capacity(), capacity);
}

TEST(LineReader, TakesAByteOrderMarkOnlyFromTheBeginning) {
  const test::TempDir dir;
  write_file(dir / "in", "\xEF\xBB\xBF{1}\n\xEF\xBB\xBF{2}\n");
  LineReader reader(dir / "in", {.lines = 1});
  LineBatch batch;
  ASSERT_TRUE(reader.next(batch, kNoGrowth));
  EXPECT_EQ(batch.line(0).size(), 3U);
  EXPECT_EQ(batch.skipped(0), 3U);
  EXPECT_EQ(batch.raw_line(0), "\xEF\xBB\xBF{1}\n");
  ASSERT_TRUE(reader.next(batch, kNoGrowth));
  EXPECT_EQ(batch.line(0).size(), 6U);
  EXPECT_EQ(batch.skipped(0), 0U);
}

// The expected lines come from a loop over single bytes. The lengths are chosen so that the window ends
// before, inside and after a line end. Lines are short around these places, and longer elsewhere.
TEST(LineReader, AgreesWithANaiveLoopWhereverTheWindowEnds) {
  constexpr size_t kWindow = 262144, kShort = 2000;
  std::mt19937 random(7);
  for (const size_t length : {kWindow - 1, kWindow, kWindow + 1, 2 * kWindow + 2}) {
    std::string contents;
    while (contents.size() < length) {
      const bool short_lines = (contents.size() + kShort) % kWindow < 2 * kShort;
      contents += short_lines || random() % 16 == 0 ? "x\n\r"[random() % 3] : 'x';
    }
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
      EXPECT_EQ(read_lines(text, {.bytes = 100'000, .lines = 70'000}).raw, expected);
    }
  }
}

// Lines of very different lengths, so that batches end before, inside and far beyond the bytes of one read.
TEST(LineReader, AgreesWithANaiveSplitWhateverTheLimits) {
  std::mt19937 random(23);
  Lines expected;
  std::string text;
  for (int i = 0; i < 600; ++i) {
    const size_t most = i % 50 == 7 ? 900'000 : i % 10 == 3 ? 40'000 : 700;
    expected.push_back(std::string(random() % most, static_cast<char>('a' + i % 26)) +
                       (random() % 3 ? "\n" : "\r\n"));
    text += expected.back();
  }
  for (const size_t bytes : {1U, 16'383U, 16'384U, 50'000U, 262'144U, 262'145U, 1U << 20})
    for (const size_t lines : {3U, 100U, 4096U}) {
      const Read read = read_lines(text, {.bytes = bytes, .lines = lines});
      ASSERT_TRUE(read.raw == expected) << bytes << " " << lines;
      for (size_t i = 0; i + 1 < read.batch_lines.size(); ++i)
        ASSERT_TRUE(read.batch_lines[i] == lines || read.batch_bytes[i] >= bytes) << bytes << " " << lines;
    }
}

TEST(LineReader, ClosesABatchAtItsLimits) {
  const std::string text = "123456789\n123456789\n123456789\n1\n2\n";
  EXPECT_EQ(read_lines(text, {.bytes = 20, .lines = 100}).batch_bytes, (std::vector<size_t>{20, 14}));
  EXPECT_EQ(read_lines(text, {.bytes = 11, .lines = 100}).batch_bytes, (std::vector<size_t>{20, 12, 2}));
  EXPECT_EQ(read_lines(text, {.bytes = 1000, .lines = 2}).batch_lines, (std::vector<size_t>{2, 2, 1}));
  EXPECT_EQ(read_lines(text, {.bytes = 1, .lines = 1}).batch_lines, (std::vector<size_t>{1, 1, 1, 1, 1}));
}

TEST(LineReader, AsksBeforeALongLineGrows) {
  const test::TempDir dir;
  write_file(dir / "in", "short\n" + std::string(2'000'000, 'x') + "\nshort\n");
  LineReader reader(dir / "in", {.bytes = 1000, .lines = 1});
  LineBatch batch;
  std::vector<size_t> asked;
  const auto grow = [&](size_t bytes) {
    EXPECT_LT(batch.bytes(), bytes);
    asked.push_back(bytes);
  };
  ASSERT_TRUE(reader.next(batch, grow));
  EXPECT_TRUE(asked.empty());
  ASSERT_TRUE(reader.next(batch, grow));
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked.back(), 2'000'001U);
  EXPECT_EQ(batch.line(0).size(), 2'000'000U);
  ASSERT_TRUE(reader.next(batch, grow));
  EXPECT_FALSE(reader.next(batch, grow));
}

TEST(LineReader, TakesTheElementsOfAnArrayAsLines) {
  EXPECT_EQ(read_lines("[1,2]").raw, (Lines{"1", "2"}));
  EXPECT_EQ(read_lines("\xEF\xBB\xBF \n[\n {\"a\":\"],}\\\"\"} ,\r\n[1,[2]]\n]\n").raw,
            (Lines{"{\"a\":\"],}\\\"\"} ", "[1,[2]]\n"}));
  EXPECT_EQ(read_lines("[]").raw, Lines{});
  EXPECT_EQ(read_lines(" [ \n ] \n").raw, Lines{});
  EXPECT_EQ(read_lines("{\"a\":[1,2]}\n").raw, Lines{"{\"a\":[1,2]}\n"});
}

TEST(LineReader, TakesLinesThatBeginWithABracketWhereThereAreNoArrays) {
  EXPECT_EQ(read_lines("[a, b\n] c\n", {.arrays = false}).lines, (Lines{"[a, b", "] c"}));
  EXPECT_EQ(read_lines("\xEF\xBB\xBF[1]\n", {.arrays = false}).lines, (Lines{"[1]"}));
}

TEST(LineReader, HandsOnWhatIsWrongInAnArray) {
  EXPECT_EQ(read_lines("[1,,2]").raw, (Lines{"1", ",", "2"}));
  EXPECT_EQ(read_lines("[,]").raw, (Lines{",", "]"}));
  EXPECT_EQ(read_lines("[1,]").raw, (Lines{"1", "]"}));
  EXPECT_EQ(read_lines("[1] x\n2\n").raw, (Lines{"1", "x\n", "2\n"}));
  EXPECT_EQ(read_lines("[1]\r\n{}\n\n[2]").raw, (Lines{"1", "{}\n", "\n", "[2]"}));
  for (const char* cut : {"[", "[1", "[1,", "[{\"a\":\"b]", "[1\n"}) {
    try {
      read_lines(cut);
      ADD_FAILURE() << cut;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(std::string(error.what()).find("ends inside its array"), std::string::npos);
    }
  }
}

/// The text of an array, together with its elements and their places.
struct ArrayText {
  std::string text;
  Lines elements;
  std::vector<std::pair<uint64_t, uint64_t>> places;
};

ArrayText random_array(std::mt19937& random, size_t bytes) {
  ArrayText array;
  uint64_t line = 1, column = 1;
  const auto put = [&](const std::string& text) {
    array.text += text;
    column += text.size();
  };
  const auto blanks = [&] {
    for (size_t n = random() % 4; n > 0; --n) {
      const char* const ends[] = {"\n", "\r\n", "\r"};
      const size_t kind = random() % 6;
      put(kind < 3 ? ends[kind] : " ");
      if (kind >= 3) continue;
      ++line;
      column = 1;
      if (kind == 2) put(" ");  // a lone \r: no \n may follow it
    }
  };
  put("[");
  while (array.text.size() < bytes) {
    if (!array.elements.empty()) put(",");
    blanks();
    array.places.emplace_back(line, column);
    array.elements.push_back("{\"k\":\"" + std::string(random() % 3000, "ab,]}[{ "[random() % 8]) +
                             "\\\"\\\\\"}");
    put(array.elements.back());
  }
  put("]");
  return array;
}

TEST(LineReader, KnowsThePlacesOfElementsWhereverTheWindowEnds) {
  std::mt19937 random(17);
  const test::TempDir dir;
  const ArrayText array = random_array(random, 900'000);
  write_file(dir / "in", array.text);
  LineReader reader(dir / "in", {.bytes = 30'000});
  LineBatch batch;
  size_t n = 0;
  while (reader.next(batch, kNoGrowth)) {
    for (size_t i = 0; i < batch.lines(); ++i, ++n) {
      EXPECT_EQ(batch.raw_line(i).substr(0, array.elements[n].size()), array.elements[n]);
      EXPECT_EQ(batch.place(i, 0).line, array.places[n].first);
      EXPECT_EQ(batch.place(i, 2).byte, array.places[n].second + 2);
    }
  }
  EXPECT_EQ(n, array.elements.size());
}

TEST(LineReader, ContinuesAtTheEndOfAnyBatch) {
  std::mt19937 random(19);
  const test::TempDir dir;
  std::string lines = "\xEF\xBB\xBFx\r\n";
  while (lines.size() < 600'000) lines += std::string(random() % 5000, 'x') + (random() % 3 ? "\n" : "\r\n");
  for (const std::string& text : {lines, random_array(random, 600'000).text + " \r\n{\"tail\":1}\n"}) {
    write_file(dir / "in", text);
    LineReader reader(dir / "in", {.bytes = 20'000});
    LineBatch batch, next;
    ASSERT_TRUE(reader.next(batch, kNoGrowth));
    for (ReaderMark mark = batch.end(); reader.next(batch, kNoGrowth); mark = batch.end()) {
      LineReader later(dir / "in", {.bytes = 20'000}, nullptr, mark);
      ASSERT_TRUE(later.next(next, kNoGrowth));
      ASSERT_EQ(next.lines(), batch.lines());
      for (size_t i = 0; i < next.lines(); ++i) ASSERT_EQ(next.raw_line(i), batch.raw_line(i));
      EXPECT_EQ(next.place(0, 1).line, batch.place(0, 1).line);
      EXPECT_EQ(next.place(0, 1).byte, batch.place(0, 1).byte);
      EXPECT_EQ(next.end().bytes, batch.end().bytes);
    }
    EXPECT_EQ(reader.consumed(), text.size());
  }
}

}  // namespace
}  // namespace megalith
