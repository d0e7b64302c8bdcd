#include "libcore/doctor/machine_checks.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libcore/base/machine/isa.h"
#include "libcore/base/text.h"
#include "tests/support/files.h"

namespace megalith {
namespace {
using State = Finding::State;

TEST(MachineChecks, NameTheKernels) {
  const Findings found = check_processor();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].text.ends_with(std::string("kernels for ") + name(chosen_isa()))) << found[0].text;
}

TEST(MachineChecks, NameTheMemoryOfTheMachine) {
  const double bytes =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  const Findings found = check_memory();
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].text.find(" of " + format_bytes(bytes) + " are available"), std::string::npos)
      << found[0].text;
}

TEST(MachineChecks, NameALimitAndHowToRaiseIt) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 200;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const Findings found = check_limits();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0], (Finding{"limits", State::kWarning, "open files: 200, wanted 1024", "ulimit -n 1024"}));
}

TEST(MachineChecks, SayThatNothingNeedsSharedMemory) {
  const test::TempDir dir;
  EXPECT_EQ(check_shared_memory(dir / "shm")[0].state, State::kGood);
  EXPECT_NE(check_shared_memory(dir / "shm")[0].text.find("is not there"), std::string::npos);
  EXPECT_NE(check_shared_memory(dir.path().string())[0].text.find("can be written"), std::string::npos);
}

}  // namespace
}  // namespace megalith
