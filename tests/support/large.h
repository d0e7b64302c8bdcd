#pragma once

#include <cstdlib>

namespace megalith::test {

/// Whether tests that take minutes should run (tests/LARGE). If not, such a test skips itself:
///   if (!large_tests_wanted()) GTEST_SKIP() << kOnlyAmongLargeTests;
inline bool large_tests_wanted() {
  return std::getenv("MEGALITH_LARGE_TESTS") != nullptr;
}

constexpr char kOnlyAmongLargeTests[] = "takes minutes: ctest -C Large -L large runs it (tests/LARGE)";

}  // namespace megalith::test
