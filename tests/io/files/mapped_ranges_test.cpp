#include "libcore/io/files/mapped_ranges.h"

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

/// Maps a file, truncates it, and reads the byte at `place`.
void read_cut_file(const std::string& path, size_t place) {
  report_cut_files("some program");
  const MappedFile before(path);
  MappedFile file = MappedFile(path);  // a move: the recorded range must follow
  std::filesystem::resize_file(path, 0);
  const volatile char byte = file.text()[place];
  static_cast<void>(byte);
}

TEST(MappedRangesDeathTest, SayWhichFileWasTruncatedWhereItIsRead) {
  const test::TempDir dir;
  const std::string path = dir / "cut";
  for (const size_t place : {0, 5000, 99'999}) {
    write_file(path, std::string(100'000, 'x'));
    // The handler's message must give the byte that was read.
    EXPECT_EXIT(read_cut_file(path, place), testing::ExitedWithCode(65),
                "some program: error: " + path + ": cannot be read at byte " + std::to_string(place) +
                    ": it had 100000 bytes when it was opened");
  }
}

TEST(MappedRangesDeathTest, LeaveOtherFaultsAsTheyAre) {
  const test::TempDir dir;
  write_file(dir / "whole", "x");
  EXPECT_EXIT(
      {
        report_cut_files("some program");
        const MappedFile file(dir / "whole");
        std::raise(SIGBUS);
        std::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace megalith
