#include "libcore/text/bpe/train/training_corpus.h"

#include "libcore/io/files/file.h"
#include "tests/text/fixtures.h"

namespace megalith {
namespace {

using test::expect_error;

class Corpus : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& contents) {
    write_file(dir_ / name, contents);
    return dir_ / name;
  }
  test::TempDir dir_;
};

using CountPretokens = Corpus;

TEST_F(CountPretokens, ReadsTheKeysOfEveryFile) {
  const PieceCounts counts = count_pretokens(
      {.files = {file(
                     "a",
                     "{\"t\": \"one two\", \"u\": \"x\"}\n\n  \n{\"t\": [\"one\", \" two\"], \"u\": \"\"}\n"),
                 file("b", "{\"u\": \"x one\", \"t\": \"\\u0074wo\", \"v\": \"no\"}")},
       .json_keys = {"t", "u"},
       .workers = 2});
  EXPECT_EQ(counts.count("one"), 2);
  EXPECT_EQ(counts.count(" two"), 2);
  EXPECT_EQ(counts.count("two"), 1);
  EXPECT_EQ(counts.count("x"), 2);
  EXPECT_EQ(counts.count(" one"), 1);
  EXPECT_EQ(counts.size(), 5u);
}

TEST_F(CountPretokens, IsTheSameForAnyNumberOfWorkers) {
  std::string lines;
  for (int i = 0; i < 20000; ++i)
    lines += "{\"text\": \"line " + std::to_string(i * i) + " of " + std::to_string(i % 100) + "\"}\n";
  const std::string path = file("many", lines);
  const PieceCounts one = count_pretokens({.files = {path}, .json_keys = {"text"}, .workers = 1});
  const PieceCounts three = count_pretokens({.files = {path}, .json_keys = {"text"}, .workers = 3});
  EXPECT_EQ(one.count("line"), 20000);
  EXPECT_EQ(one.size(), three.size());
  one.for_each([&](std::string_view piece, int64_t times) { EXPECT_EQ(three.count(piece), times) << piece; });
}

TEST_F(CountPretokens, TakesAPlainFileAsOneText) {
  const PieceCounts counts =
      count_pretokens({.files = {file("a", "x\n\n  y\n"), file("b", "x")}, .text = TextUnit::kFile});
  EXPECT_EQ(counts.count("x"), 2);
  EXPECT_EQ(counts.count("\n\n "), 1);
  EXPECT_EQ(counts.count(" y"), 1);
  EXPECT_EQ(counts.count("\n"), 1);
}

TEST_F(CountPretokens, TakesParagraphsAndCompressedTexts) {
  const std::string path = file("a", "x\n\n  y\r\nz\r\n\r\n");
  ASSERT_EQ(test::run_command("gzip -k " + path).code, 0);
  for (const size_t workers : {1, 3}) {
    const PieceCounts counts =
        count_pretokens({.files = {path, path + ".gz"}, .text = TextUnit::kParagraph, .workers = workers});
    EXPECT_EQ(counts.count("x"), 2);
    EXPECT_EQ(counts.count(" y"), 2);
    EXPECT_EQ(counts.count("z"), 2);
    EXPECT_EQ(counts.count("\n\n "), 0);
    EXPECT_EQ(counts.count("\r"), 2);  // each is a piece: a word may follow
    EXPECT_EQ(counts.count("\n"), 2);
  }
}

TEST_F(CountPretokens, CountsAFileThatIsLongerThanABatch) {
  std::string text;
  for (int i = 0; i < 600'000; ++i) text += "word ";
  const PieceCounts counts =
      count_pretokens({.files = {file("a", text)}, .text = TextUnit::kFile, .workers = 2});
  EXPECT_EQ(counts.count("word"), 1);
  EXPECT_EQ(counts.count(" word"), 599'999);
}

TEST_F(CountPretokens, NamesTheLineThatItCannotRead) {
  const std::string good = file("good", "{\"text\": \"a\"}\n");
  const auto count = [&](const std::string& contents) {
    count_pretokens({.files = {good, file("bad", contents)}, .json_keys = {"text"}, .workers = 2});
  };
  expect_error(ErrorKind::kData, {"bad:2:1"}, [&] { count("{\"text\": \"a\"}\nnot json\n"); });
  expect_error(ErrorKind::kData, {"bad:1:", "\"text\""}, [&] { count("{\"other\": 1}\n"); });
  expect_error(ErrorKind::kData, {"bad:1:"}, [&] { count("{\"text\": 7}\n"); });
  expect_error(ErrorKind::kData, {"bad:1:11", "UTF-8"}, [&] { count("{\"text\": \"\xFF\"}\n"); });
  expect_error(ErrorKind::kNoInput, {"none"},
               [&] { count_pretokens({.files = {dir_ / "none"}, .json_keys = {"text"}, .workers = 1}); });
  expect_error(ErrorKind::kData, {"bad:2:2:", "UTF-8", "latin1"},
               [&] { count_pretokens({.files = {file("bad", "a\nb\xE9")}, .text = TextUnit::kFile}); });
  expect_error(ErrorKind::kData, {"bad:1:1:", "--text file"}, [&] { count("plain words\n"); });
  expect_error(ErrorKind::kData, {"bad:3:1:"}, [&] { count("[{\"text\": \"a\"},\n\n7]"); });
}

}  // namespace
}  // namespace megalith
