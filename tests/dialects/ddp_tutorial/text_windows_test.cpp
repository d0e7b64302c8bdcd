#include "libcore/dialects/ddp_tutorial/text_windows.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "tests/support/files.h"
#include "tests/support/processes.h"

namespace megalith {
namespace {

/// The windows of a text in which each id is its own position, so the first id of a sample shows where it
/// begins.
class Windows {
 public:
  Windows(int64_t ids, const WindowSpec& spec) : spec_(spec), windows_(row(ids), spec) {}
  int64_t begin(int64_t index) const {
    std::vector<int32_t> tokens(size()), labels(size());
    std::vector<float> mask(size(), 0);
    windows_.get(index, {.tokens = tokens, .labels = labels, .loss_mask = mask});
    for (size_t i = 0; i < size(); ++i) {
      EXPECT_EQ(tokens[i], tokens[0] + static_cast<int32_t>(i));
      EXPECT_EQ(labels[i], tokens[i] + 1);
      EXPECT_EQ(mask[i], 1);
    }
    return tokens[0];
  }
  std::vector<int64_t> begins(int64_t from, int64_t to) const {
    std::vector<int64_t> out;
    for (int64_t i = from; i < to; ++i) out.push_back(begin(i));
    return out;
  }
  const TextWindows& operator*() const { return windows_; }

 private:
  size_t size() const { return static_cast<size_t>(spec_.seq_length); }
  static std::vector<int32_t> row(int64_t ids) {
    std::vector<int32_t> out(static_cast<size_t>(ids));
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  WindowSpec spec_;
  TextWindows windows_;
};

// The expected places are those of Python's list(range(0, tokens - seq, stride)).
TEST(TextWindows, BeginAtTheTutorialsPlaces) {
  EXPECT_EQ(Windows(20, {.seq_length = 4, .stride = 4}).begins(0, 4), (std::vector<int64_t>{0, 4, 8, 12}));
  EXPECT_EQ((*Windows(20, {.seq_length = 4, .stride = 4})).windows(), 4);  // range(0, 16, 4) has 4 places
  EXPECT_EQ((*Windows(21, {.seq_length = 4, .stride = 4})).windows(), 5);  // range(0, 17, 4) has 5 places
  EXPECT_EQ((*Windows(20, {.seq_length = 4, .stride = 7})).windows(), 3);  // the places 0, 7, 14
  EXPECT_EQ((*Windows(20, {.seq_length = 4, .stride = 1})).windows(), 16);
  EXPECT_EQ((*Windows(4, {.seq_length = 4, .stride = 1})).windows(), 0);
  EXPECT_EQ((*Windows(5, {.seq_length = 4, .stride = 9})).windows(), 1);
}

TEST(TextWindows, DropWhatIsLeftBehindWholeBatches) {
  const Windows windows(20, {.seq_length = 4, .stride = 2, .batch = 3});
  EXPECT_EQ((*windows).windows(), 8);
  EXPECT_EQ((*windows).epoch(), 6);
  EXPECT_EQ(windows.begins(0, 12), (std::vector<int64_t>{0, 2, 4, 6, 8, 10, 0, 2, 4, 6, 8, 10}));
}

TEST(TextWindows, ShuffleEachEpochBySeed) {
  const auto order = [](uint32_t seed, int64_t epoch) {
    const Windows windows(84, {.seq_length = 4, .stride = 2, .batch = 4, .seed = seed, .shuffled = true});
    return windows.begins(40 * epoch, 40 * (epoch + 1));
  };
  const auto first = order(1, 0);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 40u);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_EQ(order(1, 0), first);
  EXPECT_NE(order(1, 1), first);
  EXPECT_NE(order(2, 0), first);
}

TEST(TextWindows, ReadsAFoldersTextsInOrder) {
  const test::TempDir dir;
  const auto tokenizer = make_tokenizer({.type = "HuggingFaceTokenizer",
                                         .vocab = "",
                                         .merges = "",
                                         .model = test::test_data("text/goldens/trained/tokenizer.json")});
  std::filesystem::create_directories(dir / "sub");
  std::filesystem::create_directories(dir / ".git");
  write_file(dir / "b.txt", "two words");
  write_file(dir / "a.txt", "one");
  write_file(dir / "sub/c.txt", "three");
  write_file(dir / ".git/d.txt", "hidden");
  std::vector<int32_t> want;
  const auto add = [&](const char* text) { tokenizer->encode(text, want); };
  add("one");
  want.push_back(tokenizer->eod());
  add("two words");
  want.push_back(tokenizer->eod());
  add("three");
  EXPECT_EQ(read_texts(dir.path().string(), *tokenizer), want);
  want.clear();
  add("one");
  EXPECT_EQ(read_texts(dir / "a.txt", *tokenizer), want);
}

// A folder below may not be opened by the user of the test. The reader must refuse it: no text may be left
// out without notice.
TEST(TextWindows, RefusesAFolderThatItCannotReadWhole) {
  const test::TempDir dir;
  const auto tokenizer = make_tokenizer({.type = "HuggingFaceTokenizer",
                                         .vocab = "",
                                         .merges = "",
                                         .model = test::test_data("text/goldens/trained/tokenizer.json")});
  std::filesystem::create_directories(dir / "texts/closed");
  write_file(dir / "texts/a.txt", "one");
  std::filesystem::permissions(dir / "texts", std::filesystem::perms(0755));
  std::filesystem::permissions(dir / "texts/a.txt", std::filesystem::perms(0644));
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0711));
  std::filesystem::permissions(dir / "texts/closed", std::filesystem::perms::none);
  const test::ProcessResult result = test::ForkedProcess([&] {
                                       constexpr uid_t kNobody = 65534;
                                       if (::geteuid() == 0 && ::setuid(kNobody) != 0)
                                         return std::string("cannot be another user");
                                       return concat(read_texts(dir / "texts", *tokenizer).size(), " ids");
                                     }).wait();
  std::filesystem::permissions(dir / "texts/closed", std::filesystem::perms::owner_all);
  EXPECT_EQ(result.code, exit_code(ErrorKind::kIo));
  EXPECT_NE(result.text.find("cannot read all of the folder"), std::string::npos) << result.text;
}

TEST(TextWindows, NamesFileAndByte) {
  const test::TempDir dir;
  const auto tokenizer = make_tokenizer({.type = "HuggingFaceTokenizer",
                                         .vocab = "",
                                         .merges = "",
                                         .model = test::test_data("text/goldens/trained/tokenizer.json")});
  const auto refusal = [&](const std::string& path) {
    try {
      read_texts(path, *tokenizer);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal(dir / "none").find("none: "), std::string::npos);
  EXPECT_NE(refusal(dir.path().string()).find("holds no file"), std::string::npos);
  write_file(dir / "bad.txt", "good\xff");
  EXPECT_NE(refusal(dir.path().string()).find("bad.txt: byte 4 is not valid UTF-8"), std::string::npos);
  write_file(dir / "bad.txt", "caf\xe9 au lait");
  EXPECT_NE(refusal(dir.path().string()).find("`iconv -f latin1 -t utf-8 < "), std::string::npos);
}

}  // namespace
}  // namespace megalith
