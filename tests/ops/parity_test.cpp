#include <cstring>
#include <map>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/ops/cases.h"
#include "tests/support/environment.h"

namespace megalith::test {
namespace {

/// The CPU backend with the kernels of one instruction set; null where this processor lacks it.
std::unique_ptr<Backend> backend_for(const char* isa) {
  const Variable chosen("MEGALITH_ISA", isa);
  std::unique_ptr<Backend> backend;
  try {
    backend = make_cpu_backend();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  }
  return backend;
}

class CpuBackend : public testing::TestWithParam<const char*> {};

TEST_P(CpuBackend, AgreesWithTheReference) {
  const std::unique_ptr<Backend> backend = backend_for(GetParam());
  if (!backend) GTEST_SKIP() << "this processor has no " << GetParam();
  Stream stream = backend->make_stream();
  for (const OpCase& c : op_cases()) {
    Bed bed(stream);
    for (const Outcome& outcome : c.run(bed)) EXPECT_EQ(disagreement(outcome), "") << c.name;
  }
}
INSTANTIATE_TEST_SUITE_P(EachInstructionSet, CpuBackend,
                         testing::Values("generic", "avx2", "avx512", "avx512bf16"),
                         [](const auto& isa) { return std::string(isa.param); });

/// The results of all cases; without `with_gemm`, except those of gemm.
std::map<std::string, Values> results(const char* isa, bool with_gemm) {
  const std::unique_ptr<Backend> backend = backend_for(isa);
  Stream stream = backend->make_stream();
  std::map<std::string, Values> all;
  for (const OpCase& c : op_cases()) {
    if (!with_gemm && c.name.starts_with("gemm")) continue;
    Bed bed(stream, false);
    for (const Outcome& outcome : c.run(bed)) all[c.name + " " + outcome.what] = outcome.got;
  }
  return all;
}

void expect_same_bits(const std::map<std::string, Values>& a, const std::map<std::string, Values>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, values] : a) {
    const Values& other = b.at(name);
    ASSERT_EQ(values.size(), other.size()) << name;
    EXPECT_TRUE(values.empty() ||
                std::memcmp(values.data(), other.data(), values.size() * sizeof(double)) == 0)
        << name;
  }
}

TEST(CpuBackendResults, RepeatBitForBit) {
  expect_same_bits(results("", true), results("", true));
}

TEST(CpuBackendResults, DoNotDependOnTheNumberOfThreads) {
  const auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set_threads == nullptr) GTEST_SKIP() << "built without OpenMP";
  set_threads(1);
  const auto one = results("", false);
  set_threads(3);
  const auto three = results("", false);
  set_threads(2);
  expect_same_bits(one, three);
}

TEST(CpuBackendChoice, RefusesAnUnknownInstructionSet) {
  const Variable isa("MEGALITH_ISA", "avx1024");
  try {
    make_cpu_backend();
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("\"avx1024\""), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace megalith::test
