#include "libcore/train/ranks/nccl_log.h"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libcore/train/ranks/nccl_report.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::Variable;

class NcclLog : public testing::Test {
 protected:
  const test::TempDir home_;
  const Variable level_{"NCCL_DEBUG", std::nullopt}, parts_{"NCCL_DEBUG_SUBSYS", std::nullopt},
      file_{"NCCL_DEBUG_FILE", std::nullopt}, conf_{"NCCL_CONF_FILE", std::nullopt},
      home_is_{"HOME", home_.path()};
};

// NCCL opens the file by its name and replaces what is there.
TEST_F(NcclLog, IsReadWhileItIsWritten) {
  EXPECT_EQ(kept_nccl_log(), std::nullopt);
  keep_nccl_log();
  EXPECT_EQ(kept_nccl_log(), "");
  EXPECT_STREQ(std::getenv("NCCL_DEBUG"), "INFO");
  std::ofstream nccl(std::getenv("NCCL_DEBUG_FILE"));
  nccl << "one\n" << std::flush;
  EXPECT_EQ(kept_nccl_log(), "one\n");
  nccl << "two\n" << std::flush;
  EXPECT_EQ(kept_nccl_log(), "one\ntwo\n");
  EXPECT_EQ(nccl_variables_line(false).find("NCCL_DEBUG"), std::string::npos)
      << "the user has not set it: " << nccl_variables_line(false);
  EXPECT_NE(nccl_line("2.28.9").find("its connections are named after the first step"), std::string::npos);
}

TEST_F(NcclLog, IsTheUsersWhereTheUserAsksForIt) {
  for (const char* name : {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}) {
    const Variable own(name, "WARN");
    keep_nccl_log();
    EXPECT_EQ(kept_nccl_log(), std::nullopt) << name;
    EXPECT_STREQ(std::getenv(name), "WARN");
  }
}

TEST_F(NcclLog, IsTheUsersWhereAFileOfNcclAsksForIt) {
  const std::string path = home_.path() / ".nccl.conf", other = home_.path() / "other.conf";
  std::ofstream(path) << "NCCL_ALGO=Ring\nNCCL_DEBUG=WARN\n";
  keep_nccl_log();
  EXPECT_EQ(kept_nccl_log(), std::nullopt);
  std::ofstream(other) << "#NCCL_DEBUG=WARN\n";
  const Variable named("NCCL_CONF_FILE", other);  // NCCL then does not read the one at home
  keep_nccl_log();
  EXPECT_NE(kept_nccl_log(), std::nullopt);
}

// What NCCL cannot open it writes to stdout. Here the process may have one file more, which is the memory.
TEST_F(NcclLog, IsNotKeptWhereNcclCouldNotOpenIt) {
  const Variable named("NCCL_CONF_FILE",
                       home_.path() / "none");  // asks no user database, which may open files
  const int free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(free, 0);
  ::close(free);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto allow = [&](rlim_t files) {
    const rlimit limit{files, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  };
  allow(static_cast<rlim_t>(free) + 1);
  keep_nccl_log();
  allow(before.rlim_cur);
  EXPECT_EQ(std::getenv("NCCL_DEBUG"), nullptr);
  EXPECT_EQ(std::getenv("NCCL_DEBUG_FILE"), nullptr);
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(next, free) << "the memory is still open";
  ::close(next);
}

// A child that inherits the variables is another process.
TEST_F(NcclLog, OfAnotherProcessIsNotThisOnes) {
  const Variable file("NCCL_DEBUG_FILE", "/proc/1/fd/3"), level("NCCL_DEBUG", "INFO");
  EXPECT_EQ(kept_nccl_log(), std::nullopt);
  EXPECT_FALSE(is_of_kept_nccl_log("NCCL_DEBUG"));
}

}  // namespace
}  // namespace megalith
