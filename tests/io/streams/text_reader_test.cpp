#include "libcore/io/streams/text_reader.h"

#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

const auto kNoGrowth = [](size_t) {};

/// A text and the line in which it begins.
struct Text {
  std::string text;
  uint64_t line = 1;
  bool operator==(const Text&) const = default;
};
using Texts = std::vector<Text>;

void PrintTo(const Text& text, std::ostream* out) {
  *out << text.line << ":" << testing::PrintToString(text.text);
}

void add_texts(LineBatch& batch, Texts& texts) {
  for (size_t i = 0; i < batch.lines(); ++i) {
    const std::span<char> line = batch.line(i);
    texts.push_back({{line.begin(), line.end()}, batch.place(i, 0).line});
  }
}

Texts read_texts(const std::string& contents, TextUnit unit, LineLimits limits = {}) {
  const test::TempDir dir;
  write_file(dir / "in", contents);
  TextReader reader(dir / "in", unit, limits);
  LineBatch batch;
  Texts texts;
  while (reader.next(batch, kNoGrowth)) add_texts(batch, texts);
  return texts;
}

/// Splits contents into lines with their ends, which are \n, \r\n and \r.
std::vector<std::string> lines_of(const std::string& contents) {
  std::vector<std::string> lines;
  std::string line;
  for (size_t i = 0; i < contents.size(); ++i) {
    line += contents[i];
    const bool before_newline = contents[i] == '\r' && i + 1 < contents.size() && contents[i + 1] == '\n';
    if (contents[i] != '\n' && (contents[i] != '\r' || before_newline)) continue;
    lines.push_back(line);
    line.clear();
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

/// The paragraphs, found line by line.
Texts paragraphs_of(const std::string& contents) {
  Texts texts;
  bool inside = false;
  uint64_t number = 0;
  for (const std::string& line : lines_of(contents)) {
    ++number;
    const bool blank = line.find_first_not_of(" \t\r\n") == std::string::npos;
    if (!blank && !inside) texts.push_back({"", number});
    if (!blank) texts.back().text += line;
    inside = !blank;
  }
  for (Text& text : texts) text.text.erase(text.text.find_last_not_of("\r\n") + 1);
  return texts;
}

TEST(TextReader, CutsAtBlankLines) {
  EXPECT_EQ(read_texts("a\nb\n\nc", TextUnit::kParagraph), (Texts{{"a\nb", 1}, {"c", 4}}));
  EXPECT_EQ(read_texts("\n \t\r\n  a \r\n\tb\r\n\r\n\r\nc\r\r", TextUnit::kParagraph),
            (Texts{{"  a \r\n\tb", 3}, {"c", 7}}));
  EXPECT_EQ(read_texts("\n\n \n", TextUnit::kParagraph), Texts{});
  EXPECT_EQ(read_texts("", TextUnit::kParagraph), Texts{});
  EXPECT_EQ(read_texts("\xC2\xA0\n\n\x0C", TextUnit::kParagraph).size(),
            2U);  // only blanks and tabs are blank
}

TEST(TextReader, TakesAFileAsOneText) {
  const std::string text = "\n a\r\n\r\nb\n\n";
  EXPECT_EQ(read_texts(text, TextUnit::kFile), (Texts{{text, 1}}));
  const std::string many(1'000'000, 'x');
  EXPECT_EQ(read_texts(many, TextUnit::kFile, {.bytes = 1000}), (Texts{{many, 1}}));
  EXPECT_EQ(read_texts("", TextUnit::kFile), Texts{});
}

TEST(TextReader, LeavesAByteOrderMarkOut) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(read_texts(mark + "a", TextUnit::kFile), (Texts{{"a", 1}}));
  EXPECT_EQ(read_texts(mark + "\n" + mark + "a", TextUnit::kParagraph), (Texts{{mark + "a", 2}}));
  EXPECT_EQ(read_texts(mark, TextUnit::kFile), Texts{});
  const test::TempDir dir;
  write_file(dir / "in", mark + "ab\nc");
  for (const TextUnit unit : {TextUnit::kFile, TextUnit::kParagraph}) {
    TextReader reader(dir / "in", unit, {});
    LineBatch batch;
    ASSERT_TRUE(reader.next(batch, kNoGrowth));
    EXPECT_EQ(batch.place(0, 1).byte, 5U);
    EXPECT_EQ(batch.place(0, 3).line, 2U);
  }
}

std::string random_text(std::mt19937& random, size_t size) {
  constexpr std::string_view kCharacters = "abc \t\n\n\r\n";
  std::string text;
  while (text.size() < size) {
    const char c = kCharacters[random() % kCharacters.size()];
    text += random() % 1000 == 0 ? std::string(random() % 300'000, c) : std::string(1 + random() % 3, c);
  }
  return text;
}

TEST(TextReader, AgreesWithANaiveSplitWhateverTheLimits) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 60; ++turn) {
    const std::string text = random_text(random, turn % 3 == 0 ? 1'000'000 : 1 + random() % 200);
    const Texts expected = paragraphs_of(text);
    for (const size_t bytes : {size_t{1}, size_t{1} << 10, size_t{1} << 18})
      EXPECT_EQ(read_texts(text, TextUnit::kParagraph, {.bytes = bytes, .lines = 1 + random() % 100}),
                expected);
  }
}

TEST(TextReader, ContinuesAtTheEndOfAnyBatch) {
  std::mt19937 random(11);
  const test::TempDir dir;
  for (int turn = 0; turn < 20; ++turn) {
    const std::string text = "\xEF\xBB\xBF" + random_text(random, turn % 4 == 0 ? 600'000 : 200);
    write_file(dir / "in", text);
    for (const TextUnit unit : {TextUnit::kFile, TextUnit::kParagraph}) {
      const LineLimits limits{.bytes = text.size() / 8};
      const Texts whole = read_texts(text, unit, limits);
      TextReader reader(dir / "in", unit, limits);
      LineBatch batch;
      Texts texts;
      while (reader.next(batch, kNoGrowth)) {
        add_texts(batch, texts);
        TextReader later(dir / "in", unit, limits, nullptr, batch.end());
        Texts all = texts;
        LineBatch rest;
        while (later.next(rest, kNoGrowth)) add_texts(rest, all);
        EXPECT_EQ(all, whole);
      }
      EXPECT_EQ(texts, whole);
    }
  }
}

// A pipe may give its bytes one by one, so that every border lies between two reads once.
TEST(TextReader, ReadsAPipeThatGivesSingleBytes) {
  const test::TempDir dir;
  const std::string pipe = dir / "pipe", text = "\xEF\xBB\xBF a\r\n\r\nb\r\rc\n \r\nd\r";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const TextUnit unit : {TextUnit::kFile, TextUnit::kParagraph}) {
    std::thread writer([&] {
      const int out = ::open(pipe.c_str(), O_WRONLY);
      for (const char c : text) {
        EXPECT_EQ(::write(out, &c, 1), 1);
        ::usleep(2000);
      }
      ::close(out);
    });
    Texts texts;
    TextReader reader(pipe, unit, {});
    LineBatch batch;
    while (reader.next(batch, kNoGrowth)) add_texts(batch, texts);
    writer.join();
    const std::string without_mark = text.substr(3);
    EXPECT_EQ(texts, unit == TextUnit::kFile ? (Texts{{without_mark, 1}}) : paragraphs_of(without_mark));
  }
}

TEST(TextReader, KeepsLittleMoreThanTheLimitOfALongText) {
  const std::string many(3'000'000, 'x');
  for (const std::string& long_text : {many + "\n" + many, many + "\n" + std::string(1'000'000, ' ') + "\n"}) {
    const Texts found = read_texts("a\n\n" + long_text + "\n\nb\n", TextUnit::kParagraph, {.longest = 1000});
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0], (Text{"a", 1}));
    EXPECT_GT(found[1].text.size(), 1000U);
    EXPECT_LT(found[1].text.size(), 1000U + (1U << 19));
    EXPECT_TRUE(long_text.starts_with(found[1].text));
    EXPECT_EQ(found[2].text, "b");
  }
  const Texts exact = read_texts("1234\r\n  \n12345\n", TextUnit::kParagraph, {.longest = 4});
  EXPECT_EQ(exact, (Texts{{"1234", 1}, {"12345", 3}}));
  EXPECT_LT(read_texts(many, TextUnit::kFile, {.longest = 1000})[0].text.size(), 1000U + (1U << 19));
}

TEST(TextReader, RefusesATextThatIsTooLong) {
  const std::string many(3'000'000, 'x');
  for (const size_t kept : {0, 16})  // 16: even if little of the text is kept
    for (const TextUnit unit : {TextUnit::kFile, TextUnit::kParagraph}) try {
        read_texts("\n\n" + many, unit, {.longest = kept, .refused = 2'000'000});
        ADD_FAILURE();
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData);
        const std::string wanted = unit == TextUnit::kFile ? ":1: the text has more than 2000000 bytes"
                                                           : ":3: the text has more than 2000000 bytes";
        EXPECT_NE(std::string(error.what()).find(wanted), std::string::npos) << error.what();
      }
}

TEST(TextReader, AsksBeforeALongTextGrows) {
  const test::TempDir dir;
  write_file(dir / "in", std::string(2'000'000, 'x'));
  for (const TextUnit unit : {TextUnit::kFile, TextUnit::kParagraph}) {
    TextReader reader(dir / "in", unit, {.bytes = 1000});
    LineBatch batch;
    size_t last = 0;
    EXPECT_TRUE(reader.next(batch, [&](size_t size) {
      EXPECT_GT(size, last);
      EXPECT_LE(batch.bytes(), std::max<size_t>(last, 1000));
      last = size;
    }));
    EXPECT_EQ(last, batch.bytes());
  }
}

}  // namespace
}  // namespace megalith
