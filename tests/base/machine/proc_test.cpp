#include "libcore/base/machine/proc.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
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

/// A folder with the files of a machine that has 1000 MiB available.
class ControlGroups : public testing::Test {
 protected:
  ControlGroups() { write("/proc/meminfo", "MemTotal: 2048000 kB\nMemAvailable: 1024000 kB\n"); }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    write_file(file, text);
  }
  std::string root() const { return dir_.path().string(); }
  static constexpr size_t kMiB = size_t{1} << 20;

 private:
  test::TempDir dir_;
};

TEST_F(ControlGroups, AreNotNeeded) {
  EXPECT_EQ(available_memory(root()), 1000 * kMiB);
  EXPECT_EQ(group_memory_limit(root()), std::nullopt);
}

// A job of Slurm: the group of the step sets no limit, that of the job does.
TEST_F(ControlGroups, OfAJobLimitItsSteps) {
  write("/proc/self/cgroup", "0::/system.slice/job_7/step_0\n");
  const std::string job = "/sys/fs/cgroup/system.slice/job_7";
  write(job + "/step_0/memory.max", "max\n");
  write(job + "/step_0/memory.current", "1048576\n");
  write(job + "/memory.max", std::to_string(600 * kMiB));
  write(job + "/memory.current", std::to_string(500 * kMiB));
  EXPECT_EQ(available_memory(root()), 100 * kMiB);
  EXPECT_EQ(group_memory_limit(root()), 600 * kMiB);
  write(job + "/memory.stat", concat("anon 5\ninactive_file ", 300 * kMiB, "\nactive_file 7\n"));
  EXPECT_EQ(available_memory(root()), 400 * kMiB) << "files that were read are in memory only as a cache";
}

// A container: the path is the host's.
TEST_F(ControlGroups, OfAContainerAreItsRoot) {
  write("/proc/self/cgroup", "12:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/docker/1\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(50 * kMiB));
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(20 * kMiB));
  EXPECT_EQ(available_memory(root()), 30 * kMiB);
  EXPECT_EQ(group_memory_limit(root()), 50 * kMiB);
}

TEST_F(ControlGroups, ThatAreExceededLeaveNothing) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "1000\n");
  write("/sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(available_memory(root()), 0U);
}

TEST_F(ControlGroups, WithoutALimitGrantEveryCpu) {
  write("/proc/self/cgroup", "0::/pod\n");
  write("/sys/fs/cgroup/pod/cpu.max", "max 100000\n");
  EXPECT_EQ(group_cpu_limit(root()), std::nullopt);
  cpu_set_t mask;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  EXPECT_EQ(usable_cpus(root()), CPU_COUNT(&mask));
}

// A pod of half a CPU, in a group of 50.
TEST_F(ControlGroups, GrantTheTimeOfCpus) {
  write("/proc/self/cgroup", "0::/kubepods/pod7\n");
  write("/sys/fs/cgroup/kubepods/cpu.max", "5000000 100000\n");
  EXPECT_EQ(group_cpu_limit(root()), 50);
  write("/sys/fs/cgroup/kubepods/pod7/cpu.max", "50000 100000\n");
  EXPECT_EQ(group_cpu_limit(root()), 0.5);
  EXPECT_EQ(usable_cpus(root()), 1);
  write("/sys/fs/cgroup/kubepods/pod7/cpu.max", "110000 100000\n");
  cpu_set_t mask;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  EXPECT_EQ(usable_cpus(root()), std::min(2, CPU_COUNT(&mask))) << "a part of a CPU counts as one";
}

// Version 1, in a container: the path is the host's.
TEST_F(ControlGroups, OfVersion1GrantTheTimeOfCpus) {
  write("/proc/self/cgroup", "3:cpu,cpuacct:/docker/1\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(group_cpu_limit(root()), std::nullopt);
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(group_cpu_limit(root()), 2.5);
}

}  // namespace
}  // namespace megalith
