// Attention by the emulated cuDNN (tests/emulator/cudnn), which computes what the descriptors of a graph say,
// beside naive sums in fp64 and beside our kernels.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/ops/backend/attention_plugin.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/ops/backend/cuda_workspaces.h"
#include "tests/ops/cases.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"

namespace megalith::test {
namespace {

/// An attention's results in fp64, from its inputs as they are stored.
struct Naive {
  Naive(const AttentionKind& kind, const Values& qkv_values, const Values& dout_values, double scale_of)
      : k(kind), qkv(qkv_values), dout(dout_values), scale(scale_of) {
    const size_t heads = static_cast<size_t>(k.batch * k.groups * k.r * k.rows);
    out.assign(dout.size(), 0);
    lse.assign(heads, 0);
    dqkv.assign(qkv.size(), 0);
    for (int64_t b = 0; b < k.batch; ++b)
      for (int64_t g = 0; g < k.groups; ++g)
        for (int64_t h = 0; h < k.r; ++h)
          for (int64_t row = 0; row < k.rows; ++row) query(b, g, h, row);
  }

  AttentionKind k;
  const Values &qkv, &dout;
  double scale;
  Values out, lse, dqkv;

 private:
  /// The place of column 0 of head `h` of a group in qkv: r is its key, r + 1 its value.
  size_t packed(int64_t row, int64_t b, int64_t g, int64_t h) const {
    return static_cast<size_t>((((row * k.batch + b) * k.groups + g) * (k.r + 2) + h) * k.head);
  }
  void query(int64_t b, int64_t g, int64_t h, int64_t row) {
    const auto d = static_cast<size_t>(k.head);
    const size_t q = packed(row, b, g, h),
                 o = static_cast<size_t>(((row * k.batch + b) * k.groups * k.r + g * k.r + h) * k.head);
    std::vector<double> p;
    double sum = 0, delta = 0;
    for (int64_t key = 0; key <= row; ++key) {
      double score = 0;
      for (size_t i = 0; i < d; ++i) score += qkv[q + i] * qkv[packed(key, b, g, k.r) + i];
      p.push_back(std::exp(scale * score));
      sum += p.back();
    }
    lse[static_cast<size_t>(((b * k.groups + g) * k.r + h) * k.rows + row)] = std::log(sum);
    for (int64_t key = 0; key <= row; ++key)
      for (size_t i = 0; i < d; ++i)
        out[o + i] += p[static_cast<size_t>(key)] / sum * qkv[packed(key, b, g, k.r + 1) + i];
    for (size_t i = 0; i < d; ++i) delta += out[o + i] * dout[o + i];
    for (int64_t key = 0; key <= row; ++key) {
      const double share = p[static_cast<size_t>(key)] / sum;
      const size_t at_k = packed(key, b, g, k.r), at_v = packed(key, b, g, k.r + 1);
      double dp = 0;
      for (size_t i = 0; i < d; ++i) dp += dout[o + i] * qkv[at_v + i];
      const double ds = share * (dp - delta) * scale;
      for (size_t i = 0; i < d; ++i) {
        dqkv[q + i] += ds * qkv[at_k + i];
        dqkv[at_k + i] += ds * qkv[q + i];
        dqkv[at_v + i] += share * dout[o + i];
      }
    }
  }
};

const AttentionKind kKinds[] = {
    {.rows = 20, .batch = 2, .groups = 3, .r = 1, .head = 8},
    {.rows = 17, .batch = 2, .groups = 2, .r = 4, .head = 16, .dtype = DType::kF16},
    {.rows = 33, .batch = 1, .groups = 1, .r = 2, .head = 128},
    {.rows = 1, .batch = 3, .groups = 2, .r = 1, .head = 64},
};

class EmulatedCudnn : public testing::Test {
 protected:
  struct Results {
    Values qkv, dout, out, lse, dqkv;
  };
  /// By the backend's ops.
  Results compute(const AttentionKind& k) {
    Bed bed(stream_, false, false);
    const int64_t heads = k.groups * k.r;
    const Shape packed{k.rows, k.batch, k.groups, k.r + 2, k.head}, rows{k.rows, k.batch, heads, k.head};
    const View qkv = bed.put(k.dtype, packed, random_values(packed.elements(), 1)),
               dout = bed.put(k.dtype, rows, random_values(rows.elements(), 2)),
               out = bed.empty(k.dtype, rows), lse = bed.empty(DType::kF32, {k.batch, heads, k.rows}),
               dqkv = bed.empty(k.dtype, packed);
    run(stream_, Attention{.out = out, .qkv = qkv, .scale = scale_of(k), .lse = lse});
    run(stream_,
        AttentionGrad{.dqkv = dqkv, .dout = dout, .out = out, .qkv = qkv, .lse = lse, .scale = scale_of(k)});
    return {bed.get(qkv), bed.get(dout), bed.get(out), bed.get(lse), bed.get(dqkv)};
  }
  static float scale_of(const AttentionKind& k) {
    return static_cast<float>(1 / std::sqrt(static_cast<double>(k.head)));
  }
  /// Three roundings to 8 bits, of products of numbers up to `size`, and that of the result.
  static void expect_near(const Values& got, const Values& wanted, double size, const char* what) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 4 * 0x1p-8 * size) << what << ' ' << i;
  }
  static long attentions() { return emulated_controls().counts.attentions; }

  const OwnEmulatedGpus gpu_;
  const Variable kind_{"MEGALITH_EMULATOR_CUDNN", "right"};
  std::unique_ptr<Backend> backend_ = make_emulated_backend();
  Stream stream_ = backend_->make_stream();
};

TEST_F(EmulatedCudnn, ComputesWhatNaiveSumsGive) {
  for (const AttentionKind& kind : kKinds) {
    SCOPED_TRACE(kind.rows);
    ASSERT_EQ(use_cudnn(*backend_, kind), "");
    const long before = attentions();
    const Results got = compute(kind);
    EXPECT_EQ(attentions() - before, 2);
    const Naive wanted(kind, got.qkv, got.dout, scale_of(kind));
    double most = 1;
    for (const double one : wanted.dqkv) most = std::max(most, std::abs(one));
    expect_near(got.out, wanted.out, most, "out");
    expect_near(got.lse, wanted.lse, most, "lse");
    expect_near(got.dqkv, wanted.dqkv, most, "dqkv");
  }
}

// Versions and lengths are those that cudnn-frontend refuses, or for which it asks for another graph.
TEST_F(EmulatedCudnn, IsLeftOutWhereItsVersionErrs) {
  const AttentionKind whole{.rows = 128, .batch = 1, .groups = 1, .r = 1, .head = 8}, odd = kKinds[0];
  struct Case {
    const char* version;
    bool takes_whole, takes_odd;
  };
  for (const Case& c : {Case{"90000", true, false}, Case{"91000", false, false}, Case{"91001", false, false},
                        Case{"91002", true, false}, Case{"91500", true, false}, Case{"91501", true, true}}) {
    const Variable version("MEGALITH_EMULATOR_CUDNN_VERSION", c.version);
    EXPECT_EQ(use_cudnn(*backend_, whole).empty(), c.takes_whole) << c.version;
    EXPECT_EQ(use_cudnn(*backend_, odd).empty(), c.takes_odd) << c.version;
    EXPECT_EQ(trouble_with_cudnn(*backend_, odd).empty(), c.takes_odd) << c.version;
  }
}

TEST_F(EmulatedCudnn, AgreesWithOurKernels) {
  for (const AttentionKind& kind : kKinds) EXPECT_EQ(trouble_with_cudnn(*backend_, kind), "") << kind.rows;
  const long before = attentions();
  compute(kKinds[0]);
  EXPECT_EQ(attentions(), before) << "a trial alone changes nothing";
}

// So many samples that the scores of all of them would take more than SdpaSlice::kMost: by hand 8200 times 32
// KiB, of which at most 8192 go together, and 4100 divides 8200.
TEST_F(EmulatedCudnn, TakesTheGradientOfManySamplesInSlices) {
  const AttentionKind kind{.rows = 3, .batch = 1025, .groups = 8, .r = 1, .head = 8};
  EXPECT_EQ(cuda::SdpaSlice(kind).samples, 4100);
  EXPECT_LE(cuda::SdpaSlice(kind).plan_bytes, size_t{256} << 20);
  ASSERT_EQ(use_cudnn(*backend_, kind), "");
  const long before = attentions();
  const Results got = compute(kind);
  EXPECT_EQ(attentions() - before, 3);
  expect_near(got.dqkv, Naive(kind, got.qkv, got.dout, scale_of(kind)).dqkv, 8, "dqkv");
}

// 4100 samples of 32 KiB are more than a stream has at first.
TEST_F(EmulatedCudnn, AllocatesNoScratchThatWasReserved) {
  const AttentionKind kind{.rows = 3, .batch = 1025, .groups = 8, .r = 1, .head = 8};
  ASSERT_EQ(use_cudnn(*backend_, kind), "");
  backend_->reserve_scratch(stream_, cuda::SdpaSlice(kind).bytes());
  // The first copy to the device allocates the page-locked memory through which all pass.
  Bed(stream_, false, false).put(DType::kF32, {1}, {1});
  const auto allocations = [&] {
    const long before = emulated_controls().counts.allocations;
    compute(kind);
    return emulated_controls().counts.allocations - before;
  };
  const long first = allocations();
  EXPECT_EQ(first, allocations()) << "as many as where the stream has all";
}

TEST_F(EmulatedCudnn, GivesEqualBitsInThreeOrdersOfWork) {
  ASSERT_EQ(use_cudnn(*backend_, kKinds[1]), "");
  const Results first = compute(kKinds[1]);
  for (const unsigned order : {2U, 3U}) {
    emulated_controls().order = order;
    const Results again = compute(kKinds[1]);
    EXPECT_EQ(again.out, first.out);
    EXPECT_EQ(again.dqkv, first.dqkv);
  }
}

TEST_F(EmulatedCudnn, IsLeftOutWithTheReason) {
  for (const auto& [way, reason] :
       {std::pair("unmasked", "its result differs from that of our kernels"),
        {"unfinished", "its gradient of keys differs from that of our kernels"},
        {"refuses", "cuDNN 9.19.0 has no plan of at most 4096 bytes: no engine for this device"},
        {"fails", "the plan cannot be launched"}}) {
    const Variable wrong("MEGALITH_EMULATOR_CUDNN", way);
    const std::string trouble = trouble_with_cudnn(*backend_, kKinds[0]);
    EXPECT_NE(trouble.find(reason), std::string::npos) << way << ": " << trouble;
    const long before = attentions();
    compute(kKinds[0]);
    EXPECT_EQ(attentions(), before) << way << ": our kernels compute after the trial";
  }
  const Variable refuses("MEGALITH_EMULATOR_CUDNN", "refuses");
  EXPECT_NE(use_cudnn(*backend_, kKinds[0]).find("has no plan"), std::string::npos);
  const long before = attentions();
  compute(kKinds[0]);
  EXPECT_EQ(attentions(), before);
}

TEST(AttentionKind, IsOfWhatCudnnComputes) {
  const View qkv{nullptr, DType::kBf16, {8, 2, 3, 3, 64}}, out{nullptr, DType::kBf16, {8, 2, 3, 64}};
  const auto kind_of = [&](const auto& change) {
    alignas(16) static std::byte somewhere[16];
    Attention op{.out = out, .qkv = qkv, .scale = 1, .lse = {somewhere, DType::kF32, {2, 3, 8}}};
    change(op);
    return attention_kind(op);
  };
  EXPECT_EQ(kind_of([](Attention&) {}),
            (AttentionKind{.rows = 8, .batch = 2, .groups = 3, .r = 1, .head = 64}));
  EXPECT_FALSE(kind_of([](Attention& op) { op.qkv.dtype = DType::kF32; }));
  EXPECT_FALSE(kind_of([](Attention& op) { op.dropout.p = 0.1F; }));
  EXPECT_FALSE(kind_of([](Attention& op) { op.lse = {}; }));
  EXPECT_FALSE(kind_of([](Attention& op) { op.rows.first = 1; }));
  EXPECT_FALSE(kind_of([](Attention& op) { op.kv = op.lse; }));
  EXPECT_FALSE(kind_of([](Attention& op) { op.starts = op.lse; }));
  EXPECT_FALSE(kind_of([](Attention& op) { op.qkv.shape = {8, 2, 3, 3, 60}; }));
  EXPECT_FALSE(kind_of([](Attention& op) { op.qkv.shape = {8, 2, 3, 3, 136}; }));
  // The gradients of a group's scores: 8 heads x 8192 x 8192 x 2 bytes are 1 GiB.
  EXPECT_TRUE(kind_of([](Attention& op) { op.qkv.shape = {8192, 2, 3, 10, 64}; }));
  EXPECT_FALSE(kind_of([](Attention& op) { op.qkv.shape = {8193, 2, 3, 10, 64}; }));
  EXPECT_FALSE(kind_of([](Attention& op) { op.qkv.shape = {131072, 1, 1, 3, 64}; }));
}

}  // namespace
}  // namespace megalith::test
