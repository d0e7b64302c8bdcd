#include "libcore/plan/price/kernel_rates.h"

#include <gtest/gtest.h>

#include "tests/plan/problems.h"

namespace megalith {
namespace {

/// Rates without the losses within a product.
struct Ideal {
  Coefficients k = fitted_coefficients();
  PlanProblem p = test::gpt_22b(8);
  Ideal() {
    k.gemm_half_depth = 0;
    k.wave_weight = 0;
    k.kernel_gap = 0;
    p.coefficients = &k;
  }
};

// Each of the eight products has an eighth of the operations. They are so large that memory does not count:
// smooth_max adds less than a percent.
TEST(KernelRates, GroupedProductsTakeWhatTheirOperationsTake) {
  const Ideal ideal;
  const KernelRates rates(ideal.p);
  const double whole = rates.product(1 << 16, 8192, 4096, rates.peak);
  EXPECT_NEAR(rates.grouped_product(1 << 13, 8192, 4096, 8), whole, 0.01 * whole);
  EXPECT_NEAR(whole, 2.0 * (1 << 16) * 8192 * 4096 / rates.peak, 0.01 * whole);
}

// One token for each of 64 experts: their weights, 64 * 4096 * 14336 values of 2 bytes, pass through memory.
TEST(KernelRates, FewTokensForManyExpertsAreBoundByTheirWeights) {
  const Ideal ideal;
  const KernelRates rates(ideal.p);
  const double weights = 2.0 * 64 * 4096 * 14336 / rates.bandwidth;
  EXPECT_NEAR(rates.grouped_product(1, 14336, 4096, 64), weights, 0.01 * weights);
}

// 108 tiles of 128 x 256 fill one wave of the A100's 108 multiprocessors. 132 of these tiles take more than
// one and a half times as long as 108, with any size of tile. A product of 16 rows needs as many tiles as one
// of 128 rows.
TEST(KernelRates, TilesThatAreNotFullCost) {
  Ideal ideal;
  ideal.k.wave_weight = 1;
  ideal.p.machine.device.memory_bandwidth = 1e18;
  const KernelRates rates(ideal.p);
  const double full = rates.grouped_product(128, 256 * 108, 4096, 1);
  EXPECT_NEAR(rates.grouped_product(16, 256 * 108, 4096, 1) / full, 1, 1e-6);
  EXPECT_NEAR(rates.grouped_product(16, 256, 4096, 108) / full, 1, 1e-6);  // one tile per expert
  EXPECT_GT(rates.grouped_product(128, 256 * 132, 4096, 1) / full, 1.5);
}

// The softmax between its products keeps attention from drawing the power at which the clock falls.
TEST(KernelRates, LessPowerSlowsProductsDownAndNotFlashAttention) {
  Ideal ideal;
  ideal.p.software.attention = AttentionKernel::kFused;
  const KernelRates before(ideal.p);
  const double products = before.product_flops(), attention = before.flash_flops(128);
  ideal.p.machine.device.watts /= 2;
  const KernelRates after(ideal.p);
  EXPECT_LT(after.product_flops(), 0.9 * products);
  EXPECT_EQ(after.flash_flops(128), attention);
}

TEST(KernelRates, ProductsOfNothingTakeNoTime) {
  const Ideal ideal;
  const KernelRates rates(ideal.p);
  EXPECT_EQ(rates.product(0, 64, 64, rates.peak), 0);
  EXPECT_EQ(rates.product(64, 0, 64, rates.peak), 0);
  EXPECT_EQ(rates.product(64, 64, 0, rates.peak), 0);
}

TEST(KernelRates, TheHostHidesBehindTheDeviceOrTheOtherWayRound) {
  const Ideal ideal;
  const KernelRates rates(ideal.p);
  const double start = ideal.k.host_launch;
  EXPECT_EQ(rates.with_host(1, 10), 1);
  EXPECT_EQ(rates.with_host(start, 100), 100 * start);
  EXPECT_GT(rates.with_host(100 * start, 100), 100 * start);  // host and device wait for each other
}

}  // namespace
}  // namespace megalith
