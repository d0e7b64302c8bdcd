// The choice among the algorithms of the emulated cuBLASLt (tests/emulator/include/cublasLt.h), which
// suggests two that are right, a faster one that does not write the whole result, one that it then refuses,
// and a faster one that writes the right numbers, whose sum of squares is the right one, to other places.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/ops/backend/product_plugin.h"
#include "tests/ops/cases.h"
#include "tests/support/emulated_cuda.h"

namespace megalith::test {
namespace {

/// The algorithm's number, where the emulated cuBLASLt puts it.
constexpr size_t kNumber = 4;

class EmulatedCudaProducts : public testing::Test {
 protected:
  ~EmulatedCudaProducts() override {
    emulated_controls().fastest = 1;
    emulated_controls().algorithms = 5;
    emulated_controls().refused_after = -1;
    emulated_controls().epilogue_time = 0;
    emulated_controls().cublas = kVersion;
  }
  /// The number of the algorithm that is chosen; -1: none.
  int chosen(const ProductKind& kind) { return chosen(std::vector<ProductKind>{kind}).at(0); }
  std::vector<int> chosen(const std::vector<ProductKind>& kinds) {
    std::vector<int> numbers;
    for (const auto& algorithm : fastest_products(*backend_, kinds))
      numbers.push_back(algorithm ? static_cast<int>((*algorithm)[kNumber]) : -1);
    return numbers;
  }
  std::optional<ProductAlgorithm> fastest() { return fastest_products(*backend_, {kKind}).at(0); }
  /// 1/3 and others in fp32, whose products' sums have other last bits in another order.
  static Values product(Stream& stream, bool odd = false) {
    Bed bed(stream, false, odd);
    const View c = bed.empty(DType::kF32, {kKind.m, kKind.n});
    run(stream, Gemm{.c = c,
                     .a = bed.put(DType::kF32, {kKind.m, kKind.k}, random_values(kKind.m * kKind.k, 1)),
                     .b = bed.put(DType::kF32, {kKind.k, kKind.n}, random_values(kKind.k * kKind.n, 2))});
    return bed.get(c);
  }

  static constexpr size_t kVersion = 130100;
  static constexpr ProductKind kKind{.m = 12, .n = 20, .k = 100};
  const OwnEmulatedGpus gpu_;
  std::unique_ptr<Backend> backend_ = make_emulated_backend();
  Stream stream_ = backend_->make_stream();
};

TEST_F(EmulatedCudaProducts, IsTheFastestAlgorithmWhoseResultIsRight) {
  std::vector<ProductKind> kinds;
  for (const DType in : {DType::kF32, DType::kBf16, DType::kF16})
    for (const bool wide : {false, true}) {
      const ProductKind kind{.m = 24, .n = 40, .k = 16, .in = in, .out = wide ? DType::kF32 : in};
      for (const auto change :
           {+[](ProductKind&) {}, +[](ProductKind& k) { k.bias = true; },
            +[](ProductKind& k) { k.trans_a = true; }, +[](ProductKind& k) { k.trans_b = true; },
            +[](ProductKind& k) { k.trans_a = k.accumulate = true; }}) {
        kinds.push_back(kind);
        change(kinds.back());
      }
      if (wide) {
        kinds.push_back(kind);
        kinds.back().trans_a = kinds.back().accumulate = true;
        kinds.back().epilogue = Epilogue::kBiasGrad;
      }
      if (kind.out != in) continue;
      for (const bool bias : {false, true}) {
        kinds.push_back(kind);
        kinds.back().bias = bias;
        kinds.back().epilogue = bias ? Epilogue::kGelu : Epilogue::kGeluGrad;
      }
    }
  for (const unsigned fastest : {0U, 1U}) {
    emulated_controls().fastest = fastest;
    EXPECT_EQ(chosen(kinds), std::vector<int>(kinds.size(), static_cast<int>(fastest)));
  }
}

// Products of one column, all of which the unfinished algorithm leaves out, and of more than the pattern of
// the inputs, which is 65521 numbers long.
TEST_F(EmulatedCudaProducts, TakesProductsOfAnySize) {
  EXPECT_EQ(chosen({.m = 1, .n = 4, .k = 4}), 1);
  EXPECT_EQ(chosen({.m = 3, .n = 4, .k = 70000}), 1);
  EXPECT_EQ(chosen({.m = 1, .n = 1, .k = 1}), 1);
}

// A product that is not run takes no time, so the clock alone would choose an algorithm that fails.
TEST_F(EmulatedCudaProducts, IsNoAlgorithmThatFailsWhileItIsTimed) {
  constexpr int kTries = 5;  // one for the result, one before the three that are timed
  for (int runs = 0; runs <= kTries; ++runs) {
    emulated_controls().refused_after = runs;
    EXPECT_EQ(chosen(kKind), runs < kTries ? 0 : 1) << runs;
  }
}

TEST_F(EmulatedCudaProducts, AreNotTimedWhereThereIsNoChoice) {
  emulated_controls().algorithms = 1;
  const auto before = emulated_controls().counts;
  EXPECT_EQ(chosen({kKind, kKind}), (std::vector<int>{-1, -1}));
  EXPECT_EQ(emulated_controls().counts.products, before.products);
  EXPECT_EQ(emulated_controls().counts.allocations, before.allocations);
  emulated_controls().algorithms = 2;
  EXPECT_EQ(chosen(kKind), 1);
}

// The emulated cuBLASLt has no GELU of another type than the inputs'.
TEST_F(EmulatedCudaProducts, AreNoneForAnEpilogueThatIsNotThere) {
  EXPECT_EQ(
      chosen(
          {.m = 24, .n = 40, .k = 16, .in = DType::kBf16, .out = DType::kF32, .epilogue = Epilogue::kGelu}),
      -1);
}

// A product takes half a unit of time by its fastest algorithm, which is the first, and two units by the
// other one; GELU, and a bias that cuBLASLt adds, take one more as kernels of ours.
TEST_F(EmulatedCudaProducts, FuseNoEpilogueThatTakesLongerThanOpsOfOurs) {
  emulated_controls().fastest = 0;
  ProductKind kind{.m = 24, .n = 40, .k = 16, .in = DType::kBf16, .out = DType::kBf16, .bias = true};
  kind.epilogue = Epilogue::kGelu;
  const auto choice = [&](double epilogue) {
    emulated_controls().epilogue_time = epilogue;
    return fastest_products(*backend_, {kind}).at(0);
  };
  EXPECT_NE(choice(0.5), kByParts);
  const std::optional<ProductAlgorithm> parts = choice(3);
  ASSERT_EQ(parts, kByParts);
  // From then on the ops compute, and what they compute is right.
  ASSERT_TRUE(use_product(*backend_, {.kind = kind, .algorithm = *parts}));
  const auto computed = [&] {
    Bed bed(stream_, false);
    const View c = bed.empty(kind.out, {kind.m, kind.n}), before = bed.empty(kind.out, {kind.m, kind.n});
    const Gemm op{.c = c,
                  .a = bed.put(kind.in, {kind.m, kind.k}, random_values(kind.m * kind.k, 1)),
                  .b = bed.put(kind.in, {kind.k, kind.n}, random_values(kind.k * kind.n, 2)),
                  .bias = bed.put(kind.out, {kind.n}, random_values(kind.n, 3)),
                  .before_gelu = before};
    const long launched = emulated_controls().counts.kernels;
    run(stream_, op);
    const long kernels = emulated_controls().counts.kernels - launched;
    return std::pair(kernels, bed.get(c));
  };
  const auto by_parts = computed();
  ASSERT_TRUE(use_product(*backend_, {.kind = kind, .algorithm = *choice(0.5)}));
  const auto fused = computed();
  EXPECT_EQ(by_parts.first, fused.first + 1);
  EXPECT_EQ(disagreement({"c", by_parts.second, fused.second, 1.0 / 128}), "");  // bf16's last place
  kind.epilogue = Epilogue::kNone;
  EXPECT_FALSE(use_product(*backend_, {.kind = kind, .algorithm = kByParts}));
}

TEST_F(EmulatedCudaProducts, FreesWhatItAllocates) {
  chosen(kKind);
  const size_t before = cuda_memory(*backend_).left;
  chosen(kKind);
  EXPECT_EQ(cuda_memory(*backend_).left, before);
}

// The bits of the sums tell which algorithm a product has.
TEST_F(EmulatedCudaProducts, IsUsedForAlignedMatricesFromThenOn) {
  const Values suggested = product(stream_), suggested_odd = product(stream_, true);
  emulated_controls().fastest = 1;
  const auto other = fastest();
  ASSERT_TRUE(other);
  EXPECT_EQ(product(stream_), suggested);  // timing alone changes nothing
  EXPECT_TRUE(use_product(*backend_, {.kind = kKind, .algorithm = *other}));
  const Values after = product(stream_);
  EXPECT_NE(after, suggested);
  EXPECT_EQ(disagreement({"product", after, suggested, 1e-6}), "");
  EXPECT_EQ(product(stream_, true), suggested_odd);
  emulated_controls().fastest = 0;
  const auto first = fastest();
  ASSERT_TRUE(first);
  EXPECT_TRUE(use_product(*backend_, {.kind = kKind, .algorithm = *first}));
  EXPECT_EQ(product(stream_), suggested);
}

TEST_F(EmulatedCudaProducts, RefusesAnAlgorithmOfAnotherVersion) {
  const auto algorithm = fastest();
  ASSERT_TRUE(algorithm);
  emulated_controls().cublas = kVersion + 100;
  const std::unique_ptr<Backend> newer = make_emulated_backend();
  EXPECT_FALSE(use_product(*newer, {.kind = kKind, .algorithm = *algorithm}));
  EXPECT_EQ(product_library(*newer), (ProductLibrary{"emulated device", kVersion + 100}));
  // By what this version suggests: the emulated one ends the process at an algorithm that it does not know.
  Stream stream = newer->make_stream();
  product(stream);
}

}  // namespace
}  // namespace megalith::test
