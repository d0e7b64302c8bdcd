#include "libcore/ops/backend/backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/ops/dry/dry_backend.h"
#include "libcore/tensor/arena.h"
#include "tests/ops/cases.h"
#include "tests/support/compiler.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

constexpr DType kF32 = DType::kF32, kBf16 = DType::kBf16;

// ---- dry

/// Runs ops on the dry backend and reports the costs that it counted.
class Account {
 public:
  explicit Account(std::unique_ptr<Backend> backend = make_dry_backend()) : backend_(std::move(backend)) {}
  template <class Op>
  void run(const Op& op) {
    megalith::run(stream_, op);
  }
  Stream& stream() { return stream_; }
  View tensor(Shape shape, DType dtype = kF32) { return arena_.make(dtype, shape, "tensor"); }
  const Trace::Entry& of(const char* op) { return trace_.entries().at(op); }
  std::set<std::string> names() {
    std::set<std::string> all;
    for (const auto& [name, entry] : trace_.entries()) all.insert(name);
    return all;
  }

 private:
  std::unique_ptr<Backend> backend_;
  Trace trace_;
  Stream stream_{*backend_, nullptr, &trace_};
  Arena arena_ = Arena::counting("account");
};

TEST(DryBackend, AddsUpTheCostsOfProducts) {
  Account account;
  const Gemm op{.c = account.tensor({2, 3}),
                .a = account.tensor({2, 5}),
                .b = account.tensor({5, 3}),
                .bias = account.tensor({3})};
  account.run(op);
  account.run(op);
  EXPECT_EQ(account.of("gemm").calls, 2);
  EXPECT_EQ(account.of("gemm").cost.flops, 2 * 60);  // two calls of 2 x 3 x 5 multiply-adds, each 2 flops
  EXPECT_EQ(account.of("gemm").cost.bytes, 2 * 4.0 * (10 + 15 + 6 + 3));
}

// CUDA sums the columns of 64 rows at a time: two sums for each column of each of the two blocks, in fp32.
TEST(DryBackend, CountsTheScratchMemoryOfCuda) {
  Account account;
  EXPECT_EQ(cuda_workspace(account.stream().backend()), 0U);
  account.run(BiasGrad{.dbias = account.tensor({1000}), .dy = account.tensor({128, 1000})});
  EXPECT_EQ(cuda_workspace(account.stream().backend()), size_t{2} * 2 * 1000 * sizeof(float));
  account.run(BiasGrad{.dbias = account.tensor({10}), .dy = account.tensor({128, 10})});
  EXPECT_EQ(cuda_workspace(account.stream().backend()), size_t{2} * 2 * 1000 * sizeof(float));
  account.run(Gemm{.c = account.tensor({2, 3}), .a = account.tensor({2, 5}), .b = account.tensor({5, 3})});
  EXPECT_EQ(cuda_workspace(account.stream().backend()), (size_t{32} << 20) + (size_t{256} << 10));
  EXPECT_THROW(cuda_workspace(*make_cpu_backend()), Error);
}

// By hand, in bf16: a product of 6 x 8 by 8 x 16, whose epilogue saves the reading of the product (forward),
// its writing and reading (backward), and a second reading of a (of the bias).
TEST(DryBackend, CountsWhatAnEpilogueSaves) {
  Account account, fused(make_dry_cuda_backend());
  for (Account* const to : {&account, &fused}) {
    const View c = to->tensor({6, 16}, kBf16), a = to->tensor({6, 8}, kBf16), b = to->tensor({8, 16}, kBf16);
    to->run(Gemm{.c = c, .a = a, .b = b, .before_gelu = c});
    to->run(Gemm{.c = c, .a = a, .b = b, .gelu_grad_at = c});
    to->run(Gemm{.c = to->tensor({8, 16}),
                 .a = a,
                 .b = c,
                 .trans_a = true,
                 .accumulate = true,
                 .bias_grad = to->tensor({8})});
  }
  constexpr double kOfA = 2.0 * 6 * 8, kOfB = 2.0 * 8 * 16, kOfC = 2.0 * 6 * 16, kOfGrad = 4.0 * 8 * 16,
                   kOfSums = 4.0 * 8;
  EXPECT_EQ(account.of("gemm").cost.bytes, 2 * (kOfA + kOfB + kOfC) + kOfA + kOfC + 2 * kOfGrad);
  EXPECT_EQ(account.of("activate").cost.bytes, 2 * kOfC);
  EXPECT_EQ(account.of("activate_grad").cost.bytes, 3 * kOfC);
  EXPECT_EQ(account.of("bias_grad").cost.bytes, kOfA + 2 * kOfSums);
  EXPECT_EQ(fused.of("gemm").calls, 3);
  EXPECT_EQ(fused.of("gemm").cost.bytes,
            2 * (kOfA + kOfB + 2 * kOfC) + kOfA + kOfC + 2 * (kOfGrad + kOfSums));
  EXPECT_EQ(fused.of("gemm").cost.flops, account.of("gemm").cost.flops + account.of("activate").cost.flops +
                                             account.of("activate_grad").cost.flops +
                                             account.of("bias_grad").cost.flops);
  EXPECT_EQ(fused.names(), std::set<std::string>{"gemm"});
}

TEST(DryBackend, CountsAnAccumulatedResultTwice) {
  Account account;
  account.run(Gemm{.c = account.tensor({2, 3}),
                   .a = account.tensor({2, 5}, kBf16),
                   .b = account.tensor({5, 3}, kBf16),
                   .accumulate = true});
  EXPECT_EQ(account.of("gemm").cost.bytes, 2 * (10 + 15) + 2 * 4 * 6);
}

TEST(DryBackend, CountsCausalPairsOnly) {
  Account account;
  const View qkv = account.tensor({3, 2, 2, 4, 8}), out = account.tensor({3, 2, 4, 8}),
             lse = account.tensor({2, 4, 3});
  account.run(Attention{.out = out, .qkv = qkv, .scale = 1, .lse = lse});
  // 2 sequences x 4 heads x (1 + 2 + 3) pairs x 8 columns, two products of multiply-adds.
  EXPECT_EQ(account.of("attention").cost.flops, 2 * 4 * 6 * 8 * 4);
  EXPECT_EQ(account.of("attention").cost.bytes, 4 * (3 * 2 * 2 * 4 * 8 + 3 * 2 * 4 * 8 + 2 * 4 * 3));
  account.run(AttentionGrad{.dqkv = qkv, .dout = out, .out = out, .qkv = qkv, .lse = lse, .scale = 1});
  EXPECT_EQ(account.of("attention_grad").cost.flops, 2 * 4 * 6 * 8 * 10);
  account.run(CachedAttention{.out = account.tensor({1, 1, 4, 8}),
                              .k_cache = account.tensor({1, 2, 10, 8}),
                              .v_cache = account.tensor({1, 2, 10, 8}),
                              .qkv = account.tensor({1, 1, 2, 4, 8}),
                              .past = 5,
                              .scale = 1});
  EXPECT_EQ(account.of("cached_attention").cost.flops, 4 * 6 * 8 * 4);
}

TEST(DryBackend, CountsWhatPassesThroughMemory) {
  Account account;
  account.run(Activate{.y = account.tensor({3, 5}, kBf16), .x = account.tensor({3, 5}, kBf16)});
  EXPECT_EQ(account.of("activate").cost.bytes, 2 * 15 * 2);
  account.run(AdamW{.master = account.tensor({7}),
                    .m = account.tensor({7}),
                    .v = account.tensor({7}),
                    .grad = account.tensor({7}),
                    .value = account.tensor({7}, kBf16),
                    .scalars = account.tensor({StepScalar::kCount}, DType::kF64),
                    .beta1 = 0,
                    .beta2 = 0,
                    .eps = 1,
                    .weight_decay = 0});
  EXPECT_EQ(account.of("adamw").cost.bytes,
            7 * (3 * 8 + 4 + 2));  // three fp32 tensors are read and written, grad is read, value is written
  account.run(Embedding{.y = account.tensor({3, 2, 5}),
                        .ids = account.tensor({3, 2}, DType::kI32),
                        .table = account.tensor({1000, 5})});
  // Counts the rows that the op reads, not the whole table.
  EXPECT_EQ(account.of("embedding").cost.bytes, 4 * (30 + 30 + 6));
  account.stream().add(account.tensor({9}), account.tensor({9}, kBf16));
  EXPECT_EQ(account.of("add").cost.bytes, 9 * (4 + 4 + 2));
  EXPECT_EQ(account.of("add").cost.flops, 9);
}

TEST(DryBackend, StillChecks) {
  Account account;
  EXPECT_THROW(account.run(Activate{.y = account.tensor({3, 5}), .x = account.tensor({5, 3})}), Error);
}

// ---- memory and conversion on the CPU

class CpuStream : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_cpu_backend();
  Stream stream_ = backend_->make_stream();
};

TEST_F(CpuStream, AllocatesAligned) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{1} << 23}) {
    const Memory memory = backend_->allocate(bytes);
    EXPECT_EQ(memory.bytes, bytes);
    ASSERT_NE(memory.data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data.get()) % 256, 0u);
  }
}

TEST_F(CpuStream, AllocatesZeros) {
  for (const size_t bytes : {size_t{1000}, size_t{1} << 20, size_t{1} << 23})
    for (int time = 0; time < 2; ++time) {  // the second time, freed memory may be reused
      const Memory memory = backend_->allocate(bytes);
      const std::span<char> block(static_cast<char*>(memory.data.get()), bytes);
      EXPECT_EQ(std::count(block.begin(), block.end(), 0), static_cast<ptrdiff_t>(bytes));
      std::fill(block.begin(), block.end(), 1);
    }
}

TEST_F(CpuStream, SaysWhenThereIsNoMemory) {
  if (test::kAddressSanitizer) GTEST_SKIP() << "the sanitizer's allocator ends the process instead";
  try {
    backend_->allocate(size_t{1} << 60);
    ADD_FAILURE() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kSystem);
  }
}

/// The bits of fp32 values that a copy converted to dtype.
std::vector<uint16_t> narrowed(Stream& stream, DType dtype, std::vector<float> values) {
  std::vector<uint16_t> bits(values.size());
  const Shape shape{static_cast<int64_t>(values.size())};
  stream.copy({bits.data(), dtype, shape}, View{values.data(), kF32, shape});
  return bits;
}
std::vector<float> widened(Stream& stream, DType dtype, std::vector<uint16_t> bits) {
  std::vector<float> values(bits.size());
  const Shape shape{static_cast<int64_t>(bits.size())};
  stream.copy({values.data(), kF32, shape}, View{bits.data(), dtype, shape});
  return values;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Expected bits are from the format's definition: 1 sign, 8 exponent and 7 fraction bits.
TEST_F(CpuStream, RoundsToBf16ToNearestEven) {
  EXPECT_EQ(narrowed(stream_, kBf16, {1.0f, -2.0f, 1.00390625f, 1.01171875f, 0x1p-133f, kInfinity, 3.4e38f}),
            (std::vector<uint16_t>{0x3f80, 0xc000, 0x3f80, 0x3f82, 0x0001, 0x7f80, 0x7f80}));
  EXPECT_TRUE(std::isnan(widened(stream_, kBf16, narrowed(stream_, kBf16, {std::nanf("")}))[0]));
  EXPECT_EQ(widened(stream_, kBf16, {0x3f80, 0xc000, 0x0001}), (std::vector<float>{1.0f, -2.0f, 0x1p-133f}));
}

// 1 sign, 5 exponent and 10 fraction bits; subnormals are multiples of 2^-24; 65520 and above become
// infinity.
TEST_F(CpuStream, RoundsToFp16ToNearestEven) {
  EXPECT_EQ(narrowed(stream_, DType::kF16,
                     {1.0f, -2.0f, 65504.0f, 65519.0f, 65520.0f, 0x1p-14f, 0x1p-24f, 0x1.8p-24f, 0x1p-25f,
                      -kInfinity, 0x1.002p0f, 0x1.006p0f, 0x1.ffep-15f}),
            (std::vector<uint16_t>{0x3c00, 0xc000, 0x7bff, 0x7bff, 0x7c00, 0x0400, 0x0001, 0x0002, 0x0000,
                                   0xfc00, 0x3c00, 0x3c02, 0x0400}));
  EXPECT_TRUE(std::isnan(widened(stream_, DType::kF16, narrowed(stream_, DType::kF16, {std::nanf("")}))[0]));
}

TEST_F(CpuStream, KeepsEveryFp16ThereAndBack) {
  std::vector<uint16_t> all;
  for (uint32_t bits = 0; bits < 65536; ++bits)
    if ((bits & 0x7c00) != 0x7c00 || (bits & 0x3ff) == 0)
      all.push_back(static_cast<uint16_t>(bits));  // excludes NaN
  const std::vector<float> wide = widened(stream_, DType::kF16, all);
  for (size_t i = 0; i < all.size(); ++i) {
    const int exponent = all[i] >> 10 & 31, fraction = all[i] & 1023;
    const double size = exponent == 0    ? std::ldexp(fraction, -24)
                        : exponent == 31 ? std::numeric_limits<double>::infinity()
                                         : std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(static_cast<double>(wide[i]), all[i] & 0x8000 ? -size : size) << all[i];
  }
  EXPECT_EQ(narrowed(stream_, DType::kF16, wide), all);
}

TEST_F(CpuStream, FillsAndAddsEveryDtype) {
  test::Bed bed(stream_);
  for (const DType dtype : {kF32, kBf16, DType::kI32, DType::kI64, DType::kF64}) {
    const View view = bed.empty(dtype, {70001});
    stream_.fill(view, 3);
    EXPECT_EQ(bed.get(view), test::Values(70001, 3.0)) << name_of(dtype);
  }
  const View sum = bed.put(kF32, {3}, {1, 2, 3});
  stream_.add(sum, bed.put(kBf16, {3}, {0.5, 0.25, 8}));
  EXPECT_EQ(bed.get(sum), (test::Values{1.5, 2.25, 11}));
}

TEST_F(CpuStream, RefusesToCopyAnotherSize) {
  test::Bed bed(stream_);
  const View three = bed.empty(kF32, {3}), four = bed.empty(kF32, {4});
  EXPECT_THROW(stream_.copy(three, four), Error);
  EXPECT_THROW(stream_.add(three, four), Error);
}

TEST_F(CpuStream, KeepsAnAccountWithATrace) {
  Trace trace;
  Stream traced(*backend_, nullptr, &trace);
  test::Bed bed(traced);
  const View x = bed.put(kF32, {2, 2}, {1, 2, 3, 4});
  run(traced, Activate{.y = x, .x = x});
  EXPECT_EQ(trace.entries().at("activate").calls, 1);
  EXPECT_GE(trace.entries().at("activate").seconds, 0.0);
}

// oneDNN multiplies bf16 only on processors with AVX-512; elsewhere products are computed in fp32. oneDNN
// reads its limit (ONEDNN_MAX_CPU_ISA) once per process, so the test starts another one.
TEST(CpuGemm, MultipliesBf16WithoutTheProcessorsHelp) {
  const test::CommandResult result = test::run_command(concat(
      "ONEDNN_MAX_CPU_ISA=AVX2 DNNL_MAX_CPU_ISA=AVX2 ", MEGALITH_BINARY_DIR,
      "/bin/ops_test --gtest_filter='*AgreesWithTheReference/generic:*Narrow.*/avx2:WideProduct.*' 2>&1"));
  EXPECT_EQ(result.code, 0) << result.out;
}

}  // namespace
}  // namespace megalith
