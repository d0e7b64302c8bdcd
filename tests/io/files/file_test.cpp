#include "libcore/io/files/file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file_calls.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

TEST(AtomicFile, AppearsOnlyInCommit) {
  const test::TempDir dir;
  write_file(dir / "x", "old");
  {
    AtomicFile file(dir / "x");
    file.write(std::string(300'000, 'a'));  // more than the buffer holds
    file.write("end");
    EXPECT_EQ(file.size(), 300'003U);
    EXPECT_EQ(read_file(dir / "x"), "old");
    file.write_at(1, "b", 1);
    file.commit();
  }
  EXPECT_EQ(read_file(dir / "x"), "ab" + std::string(299'998, 'a') + "end");
}

TEST(AtomicFile, AppendsPartsOfOtherFilesAndReadsBack) {
  const test::TempDir dir;
  std::string text(200'001, 'a');
  text[5] = 'x';
  text[150'000] = 'y';
  write_file(dir / "from", text);
  const ReadableFile from(dir / "from");
  AtomicFile file(dir / "to");
  file.write("head ");
  file.append(from, 5, 150'000);
  file.append(from, 200'001, 0);
  std::vector<uint64_t> progress;
  file.append(from, 0, 200'001, [&](uint64_t done) { progress.push_back(done); });
  file.write(" tail");
  EXPECT_EQ(file.size(), 350'011U);
  EXPECT_EQ(progress.back(), 200'001U);
  std::string middle(5, ' ');
  file.read_back(350'006, middle.data(), 5);
  EXPECT_EQ(middle, " tail");
  file.commit();
  EXPECT_TRUE(read_file(dir / "to") == "head " + text.substr(5, 150'000) + text + " tail");
}

TEST(AtomicFile, NamesASourceThatEndsBefore) {
  const test::TempDir dir;
  write_file(dir / "from", "abcdef");
  const ReadableFile from(dir / "from");
  std::filesystem::resize_file(dir / "from", 4);
  AtomicFile file(dir / "to");
  try {
    file.append(from, 0, 6);
    FAIL() << "appended";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("from: ends at byte 4, but it had 6 when it was opened"),
              std::string::npos)
        << error.what();
  }
}

TEST(MappedFile, BringsInLittleOfAFileWhereItsPagesAreSmall) {
  const test::TempDir dir;
  constexpr size_t kMiB = size_t{1} << 20;
  write_file(dir / "x", std::string(64 * kMiB, 'a'));
  // Brings the file into the page cache: without kSmall, touching one byte can then map many pages around it.
  read_file(dir / "x");
  const MappedFile file(dir / "x", MappedPages::kSmall);
  const auto mapped_pages = [] {  // how many pages of files the process has mapped
    std::ifstream numbers("/proc/self/statm");
    size_t size = 0, resident = 0, shared = 0;
    numbers >> size >> resident >> shared;
    return shared;
  };
  const size_t before = mapped_pages();
  size_t sum = 0;
  for (size_t at = 0; at < file.size(); at += 2 * kMiB) sum += static_cast<size_t>(file.data()[at]);
  EXPECT_EQ(sum, 32U * 'a');
  EXPECT_LT((mapped_pages() - before) * 4096, 8 * kMiB);
}

TEST(ReadableFile, ReadsAnywhereAndInBlocks) {
  const test::TempDir dir;
  std::string text(131'073, 'a');
  text[65'536] = 'b';
  write_file(dir / "x", text);
  const ReadableFile file(dir / "x");
  char two[2];
  file.read_at(65'535, two, 2);
  EXPECT_EQ(std::string(two, 2), "ab");
  EXPECT_THROW(file.read_at(131'072, two, 2), Error);
  std::string read;
  std::vector<size_t> sizes;
  file.stream([&](std::span<const std::byte> block) {
    sizes.push_back(block.size());
    read.append(reinterpret_cast<const char*>(block.data()), block.size());
  });
  EXPECT_TRUE(read == text);
  EXPECT_EQ(sizes, (std::vector<size_t>{65'536, 65'536, 1}));
  EXPECT_THROW(ReadableFile(dir / "absent"), Error);
  EXPECT_THROW(ReadableFile(dir.path().string()), Error);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const test::TempDir dir;
  {
    AtomicFile file(dir / "x");
    file.write(std::string(300'000, 'a'));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(AtomicFile, LeavesNothingWhenItsProcessIsKilled) {
  const test::TempDir dir;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(dir / "x");
    file.write(std::string(300'000, 'a'));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(file_exists(dir / "x"));
  const int nameless = ::open(dir.path().c_str(), O_TMPFILE | O_RDWR, 0600);
  if (nameless < 0) GTEST_SKIP() << "this file system has no nameless files";
  ::close(nameless);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

/// Makes a folder under each of the next temporary names of `path`, as processes with the number of this one
/// leave them that were killed in other containers.
void take_names(const std::string& path) {
  const std::string name = temporary_name(path);
  const size_t number = name.rfind('-') + 1;
  const int64_t last = parse_int(name.substr(number)).value();
  for (int64_t next = last + 1; next < last + 4; ++next)
    std::filesystem::create_directory(concat(name.substr(0, number), next));
}

TEST(AtomicFile, PassesOverTemporaryNamesThatAreTaken) {
  const test::TempDir dir;
  AtomicFile file(dir / "x");
  file.write("text");
  take_names(dir / "x");
  file.commit();
  EXPECT_EQ(read_file(dir / "x"), "text");
}

TEST(AtomicDirectory, PassesOverTemporaryNamesThatAreTaken) {
  const test::TempDir dir;
  take_names(dir / "folder");
  AtomicDirectory folder(dir / "folder");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  folder.commit();
  EXPECT_TRUE(std::filesystem::is_directory(dir / "folder"));
}

TEST(AtomicFile, NamesTheFolderThatIsNotThere) {
  const test::TempDir dir;
  try {
    AtomicFile file(dir / "absent/x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos);
  }
}

TEST(AtomicFile, ContinuesBehindWhatAnInterruptedOneKept) {
  const test::TempDir dir;
  const std::string path = dir / "out";
  {
    AtomicFile file(path, 0);
    file.write("first, and lost");
    file.flush();
  }
  EXPECT_FALSE(file_exists(path));
  {
    AtomicFile file(path, 5);
    EXPECT_EQ(file.size(), 5U);
    file.write(" second");
    file.write("!");
    file.commit();
  }
  EXPECT_EQ(read_file(path), "first second!");
  EXPECT_FALSE(file_exists(AtomicFile::partial_name(path)));
}

TEST(AtomicFile, RefusesAPartialFileThatIsShorterOrInUse) {
  const test::TempDir dir;
  const AtomicFile file(dir / "out", 0);
  EXPECT_THROW(AtomicFile(dir / "out", 0), Error);
  EXPECT_THROW(AtomicFile(dir / "other", 1), Error);
}

}  // namespace
}  // namespace megalith
