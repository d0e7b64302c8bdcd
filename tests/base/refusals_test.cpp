#include "libcore/base/refusals.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

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
