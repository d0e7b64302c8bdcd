#pragma once

#include <cstdlib>

namespace megalith::test {

/// Whether to run tests that take minutes (tests/LARGE). Such a test begins with:
///   if (!large_tests_wanted()) GTEST_SKIP() << kOnlyAmongLargeTests;
inline bool large_tests_wanted() {
  return std::getenv("MEGALITH_LARGE_TESTS") != nullptr;
}

constexpr char kOnlyAmongLargeTests[] = "takes minutes: ctest -C Large -L large runs it (tests/LARGE)";

}  // namespace megalith::test
