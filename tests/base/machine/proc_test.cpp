#include "libcore/base/machine/proc.h"

#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/text.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

TEST(ProcessorName, IsThatOfTheFirstProcessor) {
  const std::string said =
      test::run_command("sed -n 's/^model name[[:space:]]*: *//p' /proc/cpuinfo | head -n 1").out;
  EXPECT_EQ(processor_name(), said.empty() ? "unknown" : std::string(trim(said)));
}

TEST(Meminfo, IsInBytes) {
  EXPECT_EQ(meminfo("MemTotal"),
            static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGE_SIZE)));
  EXPECT_EQ(meminfo("MemTot"), std::nullopt);
}

TEST(AvailableMemory, IsKnownHereAndPlausible) {
  const auto bytes = available_memory();
  ASSERT_TRUE(bytes.has_value());
  EXPECT_GT(*bytes, size_t{1} << 20);
  EXPECT_LT(*bytes, size_t{1} << 50);
}

}  // namespace
}  // namespace megalith
