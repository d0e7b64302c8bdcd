#include "libcore/io/files/direct_writer.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

/// An open file. The destructor closes its descriptor.
struct OpenFile {
  explicit OpenFile(const std::string& path) : fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {}
  ~OpenFile() { ::close(fd); }
  int fd;
};

// These tests are skipped if the temporary folder's file system does not support DirectWriter. AtomicFile's
// tests below always run.
class DirectWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    const OpenFile file(dir_ / "asked");
    if (!DirectWriter::open(file.fd, dir_ / "asked", 0)) GTEST_SKIP() << "not on this file system";
  }
  test::TempDir dir_;
};

TEST_F(DirectWriterTest, ContinuesBehindAnySizeAndWritesOverAnyPlace) {
  std::mt19937 random(1);
  for (const size_t before : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, kMiB + 5}) {
    std::string expected = test::random_bytes(random, before);
    write_file(dir_ / "x", expected);
    const OpenFile file(dir_ / "x");
    const auto writer = DirectWriter::open(file.fd, dir_ / "x", before);
    for (int step = 0; step < 60; ++step) {
      const std::string more =
          test::random_bytes(random, random() % 10 ? random() % 70'000 : random() % (5 * kMiB));
      writer->append(more.data(), more.size());
      expected += more;
      if (expected.empty()) continue;
      const size_t at = random() % 2
                            ? random() % expected.size()
                            : expected.size() - 1 - random() % std::min<size_t>(expected.size(), 9000);
      const std::string over =
          test::random_bytes(random, std::min(expected.size() - at, size_t{random() % 9000}));
      writer->write_at(at, over.data(), over.size());
      expected.replace(at, over.size(), over);
      if (step % 7 != 0) continue;
      writer->flush();
      ASSERT_TRUE(read_file(dir_ / "x") == expected) << "before " << before << " step " << step;
    }
    writer->flush();
    ASSERT_TRUE(read_file(dir_ / "x") == expected) << "before " << before;
  }
}

TEST_F(DirectWriterTest, TellsOfAFailureAtTheLatestInFlush) {
  const auto run =
      test::run_with_fault({.mode = test::Fault::kFail, .error = ENOSPC, .every = {"pwrite"}}, [&] {
        const OpenFile file(dir_ / "x");
        const auto writer = DirectWriter::open(file.fd, dir_ / "x", 0);
        const std::string piece(kMiB, 'a');
        writer->append(piece.data(), piece.size());
        writer->flush();
      });
  EXPECT_TRUE(run.fired);
  EXPECT_EQ(run.exit_code, exit_code(ErrorKind::kIo));
}

TEST_F(DirectWriterTest, HasAllBytesInTheFileAtItsEnd) {
  std::mt19937 random(4);
  for (const size_t before : {size_t{0}, size_t{5000}})
    for (const size_t more : {size_t{0}, size_t{1}, size_t{4096}, kMiB / 2, kMiB / 2 + 4097, 5 * kMiB - 1})
      for (const bool begun : {false, true}) {
        std::string expected = test::random_bytes(random, before);
        write_file(dir_ / "x", expected);
        const std::string text = test::random_bytes(random, more);
        const OpenFile file(dir_ / "x");
        const auto writer = DirectWriter::open(file.fd, dir_ / "x", before);
        writer->append(text.data(), text.size());
        if (begun) writer->start_sync();
        writer->finish_sync();
        ASSERT_TRUE(read_file(dir_ / "x") == expected + text) << before << " " << more;
      }
}

TEST_F(DirectWriterTest, TellsOfAFailureAtItsEnd) {
  for (const char* call : {"pwrite", "fsync"}) {
    const auto run =
        test::run_with_fault({.mode = test::Fault::kFail, .error = ENOSPC, .every = {call}}, [&] {
          const OpenFile file(dir_ / "x");
          const auto writer = DirectWriter::open(file.fd, dir_ / "x", 0);
          writer->append("abc", 3);
          writer->start_sync();
          writer->finish_sync();
        });
    EXPECT_TRUE(run.fired) << call;
    EXPECT_EQ(run.exit_code, exit_code(ErrorKind::kIo)) << call;
  }
}

TEST_F(DirectWriterTest, CanBeDestroyedInItsEnd) {
  const std::string text(3 * kMiB, 'a');
  for (int i = 0; i < 10; ++i) {
    const OpenFile file(dir_ / "x");
    const auto writer = DirectWriter::open(file.fd, dir_ / "x", 0);
    writer->append(text.data(), text.size());
    writer->start_sync();
  }
}

TEST_F(DirectWriterTest, TellsOfAFailureWhileItIsGivenMore) {
  const auto run = test::run_with_fault({.mode = test::Fault::kFail, .error = EIO, .every = {"pwrite"}}, [&] {
    const OpenFile file(dir_ / "x");
    const auto writer = DirectWriter::open(file.fd, dir_ / "x", 0);
    const std::string piece(kMiB, 'a');
    for (int i = 0; i < 1000; ++i) writer->append(piece.data(), piece.size());
    throw std::runtime_error("a GiB was taken");
  });
  EXPECT_EQ(run.exit_code, exit_code(ErrorKind::kIo));
}

TEST_F(DirectWriterTest, GoesThroughTheCacheWhereTheDiskRefusesAPlace) {
  const auto run = test::run_with_fault({.mode = test::Fault::kShort, .every = {"pwrite"}}, [&] {
    const OpenFile file(dir_ / "x");
    const auto writer = DirectWriter::open(file.fd, dir_ / "x", 0);
    const std::string text = std::string(3 * kMiB + 77, 'a') + "b";  // half of a write ends inside a block
    writer->append(text.data(), text.size());
    writer->flush();
    if (read_file(dir_ / "x") != text) throw std::runtime_error("other bytes");
  });
  EXPECT_TRUE(run.fired);
  EXPECT_EQ(run.exit_code, 0);
}

TEST(AtomicFile, HoldsTheSameBytesWhenItIsStreamedToTheDisk) {
  const test::TempDir dir;
  std::mt19937 random(2);
  const std::string source = test::random_bytes(random, 3 * kMiB);
  write_file(dir / "source", source);
  const ReadableFile from(dir / "source");
  AtomicFile file(dir / "x");
  file.stream_to_disk();
  std::string expected;
  for (int step = 0; step < 400; ++step) {
    switch (random() % 10) {
      case 0: {
        const size_t at = random() % source.size(), bytes = random() % (source.size() - at);
        if (step % 4 == 0) file.append(from, at, bytes), expected.append(source, at, bytes);
        break;
      }
      case 2:
        if (expected.size() > 8) {
          const size_t at = random() % (expected.size() - 8);
          file.write_at(at, "12345678", 8);
          expected.replace(at, 8, "12345678");
        }
        break;
      case 3:
        if (!expected.empty()) {
          const size_t at = random() % expected.size();
          std::string read(std::min<size_t>(expected.size() - at, 50'000), ' ');
          file.read_back(at, read.data(), read.size());
          ASSERT_TRUE(expected.compare(at, read.size(), read) == 0) << "step " << step;
        }
        break;
      default: {
        const std::string more = test::random_bytes(random, random() % (random() % 8 ? 5000 : 2 * kMiB));
        file.write(more);
        expected += more;
      }
    }
    ASSERT_EQ(file.size(), expected.size());
  }
  ASSERT_GT(expected.size(), 8 * kMiB);
  file.commit();
  EXPECT_TRUE(read_file(dir / "x") == expected);
}

TEST(AtomicFile, IsWholeWhereverItsStreamBegins) {
  const test::TempDir dir;
  std::mt19937 random(6);
  constexpr size_t kWaiting = AtomicFile::kWaiting;
  for (const size_t from : {size_t{0}, kWaiting, kWaiting + 1, kMiB})
    for (const size_t size :
         {size_t{0}, size_t{1}, kWaiting - 1, kWaiting, kWaiting + 1, kMiB, 2 * kMiB + 3}) {
      const std::string text = test::random_bytes(random, size);
      AtomicFile file(dir / "x");
      file.stream_to_disk(from);
      for (size_t at = 0; at < size;) {
        const size_t n = std::min<size_t>(size - at, random() % 200'000);
        file.write(text.data() + at, n);
        at += n;
      }
      file.start_sync();
      file.finish_sync();
      file.publish();
      ASSERT_TRUE(read_file(dir / "x") == text) << from << " " << size;
    }
}

TEST(AtomicFile, ContinuesBehindWhatWasStreamed) {
  const test::TempDir dir;
  std::mt19937 random(3);
  const std::string text = test::random_bytes(random, 9 * kMiB + 123);
  {
    AtomicFile file(dir / "x", 0);
    file.stream_to_disk();
    file.write(text);
    file.sync();
  }
  AtomicFile file(dir / "x", 5 * kMiB + 1);
  file.stream_to_disk();
  file.write(std::string_view(text).substr(5 * kMiB + 1));
  file.commit();
  EXPECT_TRUE(read_file(dir / "x") == text);
}

TEST(AtomicFile, LeavesNothingWhenStreamingFails) {
  const test::TempDir dir;
  const auto run =
      test::run_with_fault({.mode = test::Fault::kFail, .error = ENOSPC, .every = {"pwrite", "write"}}, [&] {
        AtomicFile file(dir / "x");
        file.stream_to_disk();
        const std::string piece(kMiB, 'a');
        for (int i = 0; i < 12; ++i) file.write(piece);
        file.commit();
      });
  EXPECT_EQ(run.exit_code, exit_code(ErrorKind::kIo));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(AtomicFile, LeavesNothingWhenItsEndFails) {
  const test::TempDir dir;
  for (const size_t size : {size_t{10}, 3 * kMiB}) {
    const auto run =
        test::run_with_fault({.mode = test::Fault::kFail, .error = EIO, .every = {"fsync"}}, [&] {
          AtomicFile file(dir / "x");
          file.stream_to_disk();
          file.write(std::string(size, 'a'));
          file.start_sync();
          file.commit();
        });
    EXPECT_TRUE(run.fired);
    EXPECT_EQ(run.exit_code, exit_code(ErrorKind::kIo));
    EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  }
}

}  // namespace
}  // namespace megalith
