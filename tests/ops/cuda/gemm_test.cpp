// Products whose epilogue cuBLASLt suggests an algorithm for, and then refuses to run.
#include "libcore/ops/cuda/gemm.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tests/ops/cases.h"
#include "tests/support/emulated_cuda.h"

namespace megalith::test {
namespace {

constexpr int kInvalidValue = 7, kNotSupported = 15;  // CUBLAS_STATUS_...

class EmulatedGemm : public testing::Test {
 protected:
  ~EmulatedGemm() override { emulated_controls().refuses_epilogues = 0; }
};

// Ops of ours then do the epilogue's work. Of a product without one, cuBLASLt refuses nothing.
TEST_F(EmulatedGemm, DoesWhatAnEpilogueIsRefusedFor) {
  const std::unique_ptr<Backend> backend = make_emulated_backend();
  Stream stream = backend->make_stream();
  long fused = 0;  // kernels where nothing is refused
  for (const int status : {0, kInvalidValue, kNotSupported}) {
    emulated_controls().refuses_epilogues = status;
    const long before = emulated_controls().counts.kernels;
    int products = 0;
    for (const OpCase& c : op_cases()) {
      if (!c.name.starts_with("gemm ")) continue;
      ++products;
      Bed bed(stream);
      for (const Outcome& outcome : c.run(bed)) EXPECT_EQ(disagreement(outcome), "") << c.name << status;
    }
    EXPECT_GT(products, 10);
    const long kernels = emulated_controls().counts.kernels - before;
    if (status == 0)
      fused = kernels;
    else
      EXPECT_GT(kernels, fused) << "kernels of ours do what was fused";
  }
}

}  // namespace
}  // namespace megalith::test
