#include "libcore/base/refusals.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/compiler.h"
#include "tests/support/environment.h"

namespace megalith {
namespace {

std::system_error refused(int code) {
  return {code, std::generic_category()};
}

template <class Thrown>
Error error_of(const Thrown& thrown) {
  return as_error(std::make_exception_ptr(thrown));
}

TEST(AsError, TellsRefusalsFromBugs) {
  EXPECT_EQ(error_of(std::bad_alloc()).kind(), ErrorKind::kSystem);
  EXPECT_EQ(error_of(std::bad_array_new_length()).kind(), ErrorKind::kSystem);
  EXPECT_EQ(error_of(refused(EAGAIN)).kind(), ErrorKind::kSystem);
  EXPECT_EQ(error_of(refused(ENOMEM)).kind(), ErrorKind::kSystem);
  EXPECT_EQ(error_of(refused(EINVAL)).kind(), ErrorKind::kInternal);
  EXPECT_EQ(error_of(std::out_of_range("at")).kind(), ErrorKind::kInternal);
  EXPECT_EQ(error_of(7).kind(), ErrorKind::kInternal);
  const Error ours = error_of(Error(ErrorKind::kData, "x: wrong"));
  EXPECT_EQ(ours.kind(), ErrorKind::kData);
  EXPECT_STREQ(ours.what(), "x: wrong");
}

TEST(AsError, NamesTheLimits) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_DATA, &before), 0);
  rlimit lower = before;
  lower.rlim_cur = rlim_t{1} << 40;
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &lower), 0);
  const std::string text = out_of_memory().what();
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &before), 0);
  EXPECT_NE(text.find("ulimit -d is 1073741824"), std::string::npos) << text;
}

/// Mappings of a page each, as many as a process may have less `spare`; none if it may have very many.
class ManyMappings {
 public:
  explicit ManyMappings(int64_t spare) {
    std::ifstream("/proc/sys/vm/max_map_count") >> most_;
    if (most_ > 200000) return;
    std::ifstream maps("/proc/self/maps");
    const std::string lines{std::istreambuf_iterator<char>(maps), {}};
    const int64_t wanted = most_ - spare - std::count(lines.begin(), lines.end(), '\n');
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    bytes_ = static_cast<size_t>(wanted) * page;
    pages_ = ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages_ == MAP_FAILED) return;
    for (size_t at = 0; at < bytes_; at += 2 * page)
      made_ &= ::mprotect(static_cast<char*>(pages_) + at, page, PROT_READ) == 0;
  }
  ~ManyMappings() {
    if (pages_ != MAP_FAILED) ::munmap(pages_, bytes_);
  }
  ManyMappings(const ManyMappings&) = delete;
  ManyMappings& operator=(const ManyMappings&) = delete;
  bool made() const { return made_ && pages_ != MAP_FAILED; }
  int64_t most() const { return most_; }

 private:
  int64_t most_ = 0;
  size_t bytes_ = 0;
  void* pages_ = MAP_FAILED;
  bool made_ = true;
};

TEST(AsError, NamesTheNumberOfMappings) {
  EXPECT_EQ(std::string(out_of_memory().what()).find("max_map_count"), std::string::npos);
  const ManyMappings many(300);
  if (many.most() > 200000) GTEST_SKIP() << "a process may have " << many.most() << " mappings";
  ASSERT_TRUE(many.made());
  const std::string text = out_of_memory().what();
  EXPECT_NE(text.find("vm.max_map_count is " + std::to_string(many.most())), std::string::npos) << text;
  EXPECT_EQ(text.find("smaller model"), std::string::npos) << text;
}

// Where no caller gets the exception.
TEST(RefusalsDeathTest, EndTheProcessWithOneLine) {
  if (test::kAddressSanitizer) GTEST_SKIP() << "the sanitizer takes SIGSEGV for itself";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_thread = [](const std::function<void()>& work) { std::thread(work).join(); };
  const std::function<void()> get_no_memory = [] { throw std::bad_alloc(); };
  const std::vector<std::pair<std::function<void()>, std::string>> cases = {
      {[&] { in_thread(get_no_memory); }, "out of memory"},
      {[&] { in_thread([] { throw refused(EAGAIN); }); }, "the system makes no more threads"},
      {[&] { in_thread([] { throw Error(ErrorKind::kSystem, "no room"); }); }, "no room"},
      {[&]() noexcept { get_no_memory(); }, "out of memory"},
      {[] {
         const UncheckedMemory unchecked;
         volatile int* volatile nothing = nullptr;  // the compiler may drop a store that nobody reads
         *nothing = 1;
       },
       "out of memory"},
  };
  for (const auto& [work, text] : cases)
    EXPECT_EXIT(
        {
          report_refusals("train");
          work();
        },
        testing::ExitedWithCode(71), "^train: error: " + text + "[^\n]*\n$");
}

TEST(RefusalsDeathTest, LeaveOtherEndsAsTheyAre) {
  if (test::kAddressSanitizer) GTEST_SKIP() << "the sanitizer takes SIGSEGV for itself";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        report_refusals("train");
        std::thread([] { throw std::out_of_range("a bug"); }).join();
      },
      testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(
      {
        report_refusals("train");
        std::raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

// OpenMP has told why, but not which limits there are.
TEST(RefusalsDeathTest, AreWhatOpenMpExitsFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        report_refusals("train");
        std::exit(1);
      },
      testing::ExitedWithCode(71), "^train: error: OpenMP gets no more threads or memory;[^\n]*\n$");
  EXPECT_EXIT(
      {
        report_refusals("train");
        end_normally();
        std::exit(1);
      },
      testing::ExitedWithCode(1), "");
}

TEST(CheckStackLimit, NamesWhatIsTooLittle) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_STACK, &before), 0);
  EXPECT_NO_THROW(check_stack_limit());
  rlimit lower = before;
  lower.rlim_cur = rlim_t{64} << 10;
  ASSERT_EQ(::setrlimit(RLIMIT_STACK, &lower), 0);
  std::string text;
  try {
    check_stack_limit();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kSystem);
    text = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_STACK, &before), 0);
  EXPECT_EQ(text, "the stack limit is 64 KiB, wanted at least 384 KiB; raise it with ulimit -s");
}

TEST(CheckStackLimit, NamesTheVariableOfOpenMp) {
  const auto complaint = [](const char* name, const char* value) {
    const test::Variable variable(name, value);
    try {
      check_stack_limit();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kSystem);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint("OMP_STACKSIZE", "64K"),
            "OMP_STACKSIZE=64K in the environment: stacks of 64 KiB, wanted at least 384 KiB; raise it or "
            "unset it");
  // As OpenMP 5.2, section 21.2.7, writes sizes; a number alone is in KiB.
  for (const char* name : {"OMP_STACKSIZE", "OMP_STACKSIZE_ALL", "GOMP_STACKSIZE"}) {
    for (const char* small : {"0", "16", "383", "64k", " 64 K ", "65536B", "0M", "393215 b"})
      EXPECT_NE(complaint(name, small), "") << name << small;
    for (const char* enough : {"384", "4M", "1 g", "393216B", "", "many", "-1", "64x", "99999999999999999999",
                               "18446744073709551615G"})
      EXPECT_EQ(complaint(name, enough), "") << name << enough;
  }
  // That of another OpenMP; a number alone is in bytes.
  EXPECT_NE(complaint("KMP_STACKSIZE", "65536"), "");
  EXPECT_NE(complaint("KMP_STACKSIZE", "64k"), "");
  EXPECT_EQ(complaint("KMP_STACKSIZE", "4194304"), "");
}

}  // namespace
}  // namespace megalith
