#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/backend.h"
#include "tests/support/environment.h"

namespace megalith::test {

/// Base of tests that run on the CPU backend of each instruction set and are skipped for those that this
/// processor lacks. Each suite needs INSTANTIATE_TEST_SUITE_P(EachInstructionSet, Suite, kInstructionSets,
/// instruction_set_name).
class InstructionSetTest : public testing::TestWithParam<const char*> {
 protected:
  InstructionSetTest() {
    const Variable isa("MEGALITH_ISA", GetParam());
    try {
      backend_ = make_cpu_backend();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    }
  }
  void SetUp() override {
    if (!backend_) GTEST_SKIP() << "this processor has no " << GetParam();
  }
  std::unique_ptr<Backend> backend_;
};

inline const auto kInstructionSets = testing::Values("generic", "avx2", "avx512", "avx512bf16");

inline std::string instruction_set_name(const testing::TestParamInfo<const char*>& isa) {
  return isa.param;
}

}  // namespace megalith::test
