#include "libcore/io/run/held_output.h"

#include <filesystem>
#include <iterator>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

ErrorKind kind_of_second(const std::string& path) {
  try {
    const HeldOutput second(path);
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind::kInternal;  // the constructor threw nothing
}

TEST(HeldOutput, LocksAFileAndWhatIsNotThereYet) {
  const test::TempDir dir;
  write_file(dir / "file", "text");
  for (const char* const name : {"file", "new"}) {
    {
      const HeldOutput first(dir / name);
      EXPECT_EQ(kind_of_second(dir / name), ErrorKind::kComm) << name;
    }
    EXPECT_EQ(kind_of_second(dir / name), ErrorKind::kInternal) << name;
  }
  EXPECT_EQ(read_file(dir / "file"), "text");
  EXPECT_FALSE(file_exists(dir / "new"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(HeldOutput, LocksWhatALinkLeadsTo) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  write_file(dir / "file", "text");
  fs::create_directory(dir / "folder");
  fs::create_symlink("../file", dir / "folder/link");
  fs::create_symlink("link", dir / "folder/second");
  fs::create_symlink("later", dir / "folder/new");  // a link whose target does not exist yet
  write_file(dir / "folder/.link.tmp-1-0", "of a report that was killed in the link's place");
  for (const auto& [one, other] : {std::pair{"file", "folder/link"},
                                   {"folder/link", "file"},
                                   {"folder/link", "folder/second"},
                                   {"folder/new", "folder/later"},
                                   {"folder/later", "folder/new"}}) {
    const HeldOutput first(dir / one);
    EXPECT_EQ(kind_of_second(dir / other), ErrorKind::kComm) << one << ' ' << other;
  }
  EXPECT_FALSE(file_exists(dir / "folder/.link.tmp-1-0"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir / "folder"), {}), 3);  // no lock file is left
}

TEST(HeldOutput, KeepsTheReaderOfAFifoWaiting) {
  const test::TempDir dir;
  const std::string fifo = dir / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(is_stream(fifo));
  EXPECT_EQ(kind_of_second(fifo), ErrorKind::kIo);  // the FIFO has no reader
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  pollfd seen{.fd = reader, .events = POLLIN, .revents = 0};
  {
    const HeldOutput held(fifo);
    EXPECT_EQ(::poll(&seen, 1, 0), 0);  // nothing to read, and the FIFO has not ended
    write_file(fifo, "a", OutputKind::kStream);
    char byte = 0;
    EXPECT_EQ(::read(reader, &byte, 1), 1);
    EXPECT_EQ(::poll(&seen, 1, 0), 0);  // the writer has closed the FIFO, but it has not ended
  }
  EXPECT_EQ(::poll(&seen, 1, 0), 1);
  EXPECT_NE(seen.revents & POLLHUP, 0);
  ::close(reader);
}

TEST(HeldOutput, LeavesDevicesToEverybody) {
  EXPECT_TRUE(is_stream("/dev/null"));
  const HeldOutput one("/dev/null"), other("/dev/null"), none("");
  EXPECT_FALSE(file_exists("/dev/.null.lock"));
}

}  // namespace
}  // namespace megalith
