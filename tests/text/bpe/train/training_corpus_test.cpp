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
      count_pretokens({.files = {file("a", "x\n\n  y\n"), file("b", "x")}, .json_keys = {}, .workers = 1});
  EXPECT_EQ(counts.count("x"), 2);
  EXPECT_EQ(counts.count("\n\n "), 1);
  EXPECT_EQ(counts.count(" y"), 1);
  EXPECT_EQ(counts.count("\n"), 1);
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
  expect_error(ErrorKind::kData, {"bad", "byte 2", "UTF-8"},
               [&] { count_pretokens({.files = {file("bad", "ab\xFF")}, .json_keys = {}, .workers = 1}); });
}

}  // namespace
}  // namespace megalith
