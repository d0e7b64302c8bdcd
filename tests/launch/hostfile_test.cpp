#include "libcore/launch/hostfile.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

TEST(Hostfile, ReadsTheThreeForms) {
  const TempDir dir;
  write_file(dir / "hosts", "# two servers and one\n\nnode1 slots=4\n  node2:8  # of MPICH\r\nfe80::1\n");
  const auto hosts = read_hostfile(dir / "hosts");
  ASSERT_EQ(hosts.size(), 3U);
  EXPECT_EQ(hosts[0].host, "node1");
  EXPECT_EQ(hosts[0].slots, 4);
  EXPECT_EQ(hosts[1].host, "node2");
  EXPECT_EQ(hosts[1].slots, 8);
  EXPECT_EQ(hosts[2].host, "fe80::1");
  EXPECT_EQ(hosts[2].slots, 0);
}

TEST(Hostfile, NamesTheLineThatIsNone) {
  const TempDir dir;
  for (const char* line : {"node slots=x", "node slots=0", "node cpus=3", "node:", "node:2 slots=2"}) {
    write_file(dir / "hosts", std::string("node1\n") + line + "\n");
    try {
      read_hostfile(dir / "hosts");
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find("hosts:2: \"" + std::string(line)), std::string::npos)
          << error.what();
    }
  }
  write_file(dir / "hosts", "# nobody\n");
  EXPECT_THROW(read_hostfile(dir / "hosts"), Error);
}

TEST(Hostfile, FindsThisMachine) {
  EXPECT_EQ(place_of_this_machine({{"203.0.113.1"}, {"127.0.0.1"}}, "f"), 1);
  EXPECT_THROW(place_of_this_machine({{"203.0.113.1"}, {"203.0.113.2"}}, "f"), Error);
  EXPECT_THROW(place_of_this_machine({{"127.0.0.1"}, {"localhost"}}, "f"), Error);
}

}  // namespace
}  // namespace megalith::test
