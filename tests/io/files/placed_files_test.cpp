#include "libcore/io/files/placed_files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

void place(PlacedFiles& files, size_t file, uint64_t offset, std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t n = std::min(bytes.size() - at, files.max_bytes());
    std::memcpy(files.begin(file, offset + at, n), bytes.data() + at, n);
    files.end();
    at += n;
  }
}

// The bytes [begin, end) of a file.
struct Cut {
  size_t file;
  size_t begin, end;
};

class PlacedFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const size_t bytes : {9 * kMiB + 77, size_t{5}, size_t{4096}, 3 * kMiB, size_t{0}})
      contents_.push_back(test::random_bytes(random_, bytes));
    for (size_t file = 0; file < contents_.size(); ++file)
      for (size_t at = 0; at < contents_[file].size();) {
        const size_t most = random_() % 4 ? 20'000 : kMiB;
        const size_t end = std::min(contents_[file].size(), at + 1 + random_() % most);
        cuts_.push_back({file, at, end});
        at = end;
      }
  }
  std::string path(size_t file) const { return dir_ / concat("f", file); }
  void create(PlacedFiles& files) const {
    for (size_t file = 0; file < contents_.size(); ++file)
      EXPECT_EQ(files.create(path(file), contents_[file].size()), file);
  }
  std::string_view text(const Cut& cut) const {
    return std::string_view(contents_[cut.file]).substr(cut.begin, cut.end - cut.begin);
  }
  void write_all(PlacedFiles& files) const {
    for (const Cut& cut : cuts_) place(files, cut.file, cut.begin, text(cut));
    files.finish();
  }
  void expect_files() const {
    for (size_t file = 0; file < contents_.size(); ++file)
      EXPECT_TRUE(read_file(path(file)) == contents_[file]) << file;
  }

  std::mt19937 random_{1};
  std::vector<std::string> contents_;
  std::vector<Cut> cuts_;
  test::TempDir dir_;
};

TEST_F(PlacedFilesTest, HoldWhatCameInAnyOrder) {
  std::shuffle(cuts_.begin(), cuts_.end(), random_);
  PlacedFiles files(kMiB);
  create(files);
  write_all(files);
  expect_files();
  for (const Cut& cut : cuts_) {  // overwrites single bytes as small parts
    contents_[cut.file][cut.begin] = 'x';
    files.put(cut.file, {{cut.begin, "x"}});
  }
  expect_files();
}

// A reader must get the right bytes, from memory or from the file, whether it reads in the order of writing,
// in another order, or only some parts.
TEST_F(PlacedFilesTest, AreReadWhileTheyAreWritten) {
  for (const size_t memory : {size_t{0}, kMiB, 40 * kMiB})
    for (const int how : {0, 1, 2}) {
      std::shuffle(cuts_.begin(), cuts_.end(), random_);
      std::vector<Cut> read = cuts_;
      if (how == 1) std::shuffle(read.begin(), read.end(), random_);
      if (how == 2) read.resize(read.size() / 2);
      {
        PlacedFiles files(std::max(memory, 3 * (kMiB + 2 * 4096)));
        create(files);
        auto reading = std::async(std::launch::async,
                                  [&, reader = std::make_unique<PlacedFiles::Reader>(files)]() mutable {
                                    const auto ended = std::move(reader);
                                    for (const Cut& cut : read) {
                                      const ReadableFile file(path(cut.file), &files);
                                      std::string bytes(cut.end - cut.begin, '\0');
                                      file.read_at(cut.begin, bytes.data(), bytes.size());
                                      EXPECT_TRUE(bytes == text(cut)) << cut.file << " from " << cut.begin;
                                    }
                                  });
        write_all(files);
        reading.get();
        expect_files();
      }
      for (size_t file = 0; file < contents_.size(); ++file) std::filesystem::remove(path(file));
    }
}

// A buffer is kept until the reader has read it. The reader must get the buffer's bytes even if the file has
// been overwritten since.
TEST_F(PlacedFilesTest, GiveAReaderTheBytesThatTheyWrite) {
  PlacedFiles files(4 * kMiB);
  const size_t number = files.create(path(0), kMiB);
  const PlacedFiles::Reader reader(files);
  place(files, number, 0, std::string(kMiB / 2, 'a'));
  files.finish();
  std::string other(kMiB / 2, 'b');
  const ReadableFile plain(path(0)), following(path(0), &files);
  write_file(path(1), "no file of theirs");
  EXPECT_EQ(files.find(ReadableFile(path(1)).descriptor()), PlacedFiles::kNone);
  EXPECT_EQ(files.find(plain.descriptor()), number);
  files.put(number, {{0, "b"}});
  std::string bytes(2, ' ');
  plain.read_at(0, bytes.data(), 2);
  EXPECT_EQ(bytes, "ba");
  following.read_at(0, bytes.data(), 2);
  EXPECT_EQ(bytes, "aa");
  EXPECT_THROW(following.read_at(kMiB - 1, bytes.data(), 2), Error);  // one byte beyond the end
}

TEST_F(PlacedFilesTest, FailTheReaderWhenNothingMoreComes) {
  PlacedFiles files(kMiB);
  files.create(path(0), 100);
  const ReadableFile file(path(0), &files);
  std::string bytes(10, ' ');
  files.abandon();
  EXPECT_THROW(file.read_at(5, bytes.data(), bytes.size()), Error);
}

TEST_F(PlacedFilesTest, FillAFileThatAppearsLater) {
  AtomicFile named(path(0));
  {
    PlacedFiles files(kMiB);
    const size_t number = files.fill(named, contents_[0].size());
    place(files, number, 0, contents_[0]);
    files.finish();
    EXPECT_EQ(files.find(ReadableFile(named.open_path()).descriptor()), number);
  }
  EXPECT_FALSE(file_exists(path(0)));
  named.commit();
  EXPECT_TRUE(read_file(path(0)) == contents_[0]);
}

TEST_F(PlacedFilesTest, RefuseANameThatIsTaken) {
  PlacedFiles files(kMiB);
  files.create(path(0), 100);
  EXPECT_THROW(files.create(path(0), 100), Error);
}

TEST_F(PlacedFilesTest, TellOfAFullDisk) {
  for (const char* call : {"fallocate", "pwrite"}) {
    const auto run =
        test::run_with_fault({.mode = test::Fault::kFail, .error = ENOSPC, .every = {call}}, [&] {
          PlacedFiles files(kMiB);
          files.create(path(0), 20 * kMiB);
          auto reading =
              std::async(std::launch::async, [&, reader = std::make_unique<PlacedFiles::Reader>(files)] {
                const ReadableFile file(path(0), &files);
                std::string bytes(10, ' ');
                file.read_at(19 * kMiB, bytes.data(), bytes.size());
              });
          const std::string piece(kMiB / 8, 'a');
          for (size_t i = 0; i < 100; ++i) place(files, 0, i * piece.size(), piece);
          throw std::runtime_error("nobody noticed");
        });
    EXPECT_TRUE(run.fired) << call;
    EXPECT_EQ(run.exit_code, exit_code(ErrorKind::kIo)) << call;
    std::filesystem::remove(path(0));
  }
}

// Tests a file system that cannot reserve space, and write calls that write only half of their bytes.
TEST_F(PlacedFilesTest, WriteWhereTheSystemCanDoLess) {
  for (const test::Fault& fault :
       {test::Fault{.mode = test::Fault::kFail, .error = EOPNOTSUPP, .every = {"fallocate"}},
        test::Fault{.mode = test::Fault::kShort, .every = {"pwrite"}}}) {
    const auto run = test::run_with_fault(fault, [&] {
      PlacedFiles files(kMiB);
      create(files);
      write_all(files);
    });
    EXPECT_TRUE(run.fired);
    EXPECT_EQ(run.exit_code, 0);
    expect_files();
    for (size_t file = 0; file < contents_.size(); ++file) std::filesystem::remove(path(file));
  }
}

}  // namespace
}  // namespace megalith
