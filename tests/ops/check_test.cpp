#include <functional>

#include <gtest/gtest.h>

#include "libcore/ops/backend/backend.h"
#include "libcore/tensor/arena.h"

namespace megalith {
namespace {

constexpr DType kF32 = DType::kF32, kBf16 = DType::kBf16, kI32 = DType::kI32, kI64 = DType::kI64;

/// A tensor without memory: checks do not read elements.
View tensor(Shape shape, DType dtype = kF32) {
  static Arena arena = Arena::counting("tests");
  return arena.make(dtype, shape, "tensor");
}

/// Changes a good op with `spoil`. Expects its check() to throw kInternal with the op's name and `part` in
/// the message.
template <class Op>
void expect_refused(const Op& good, const std::function<void(Op&)>& spoil, const std::string& part) {
  EXPECT_NO_THROW(good.check());
  Op op = good;
  spoil(op);
  try {
    op.check();
    ADD_FAILURE() << Op::kName << " accepted: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    const std::string what = error.what();
    EXPECT_EQ(what.rfind(std::string(Op::kName) + ": wanted ", 0), 0u) << what;
    EXPECT_NE(what.find(part), std::string::npos) << what;
  }
}

TEST(GemmCheck, RefusesWhatDoesNotMultiply) {
  const Gemm good{.c = tensor({2, 3, 5}), .a = tensor({2, 3, 7}), .b = tensor({7, 5})};
  using Spoil = std::function<void(Gemm&)>;
  expect_refused(good, Spoil([](Gemm& op) { op.a = tensor({5, 7}); }), "as many rows in c as in op(a)");
  expect_refused(good, Spoil([](Gemm& op) { op.b = tensor({7, 6}); }), "as many columns in c as in op(b)");
  expect_refused(good, Spoil([](Gemm& op) { op.b = tensor({8, 5}); }), "inner dimensions");
  expect_refused(good, Spoil([](Gemm& op) { op.trans_a = true; }), "as many rows");
  expect_refused(good, Spoil([](Gemm& op) { op.trans_b = true; }), "as many columns");
  expect_refused(good, Spoil([](Gemm& op) { op.b = tensor({7, 5}, kBf16); }), "a's dtype");
  expect_refused(good, Spoil([](Gemm& op) { op.c.dtype = kBf16; }), "c fp32");
  expect_refused(good, Spoil([](Gemm& op) { op.bias = tensor({6}); }), "one bias per column");
  expect_refused(good, Spoil([](Gemm& op) { op.bias = tensor({5}, kBf16); }), "bias of c's or a's dtype");
  expect_refused(good, Spoil([](Gemm& op) { op.bias = tensor({5}), op.accumulate = true; }), "no bias");
  expect_refused(good, Spoil([](Gemm& op) { op.c = {}; }), "c present");
  expect_refused(good, Spoil([](Gemm& op) { op.a.dtype = kI32; }), "a present");
}

TEST(GemmCheck, RefusesEpiloguesThatDoNotFit) {
  using Spoil = std::function<void(Gemm&)>;
  const View c = tensor({6, 5}, kBf16);
  const Gemm gelu{.c = c, .a = tensor({6, 7}, kBf16), .b = tensor({7, 5}, kBf16), .before_gelu = c};
  expect_refused(gelu, Spoil([](Gemm& op) { op.before_gelu = tensor({5, 6}, kBf16); }), "before_gelu and c");
  expect_refused(gelu, Spoil([](Gemm& op) { op.before_gelu = tensor({6, 5}); }), "before_gelu and c");
  expect_refused(gelu, Spoil([](Gemm& op) { op.accumulate = true; }), "no GELU");
  expect_refused(gelu, Spoil([&](Gemm& op) { op.gelu_grad_at = c; }), "one epilogue");
  Gemm grad = gelu;
  grad.before_gelu = {};
  grad.gelu_grad_at = c;
  expect_refused(grad, Spoil([](Gemm& op) { op.gelu_grad_at = tensor({6, 5}); }), "gelu_grad_at and c");
  expect_refused(grad, Spoil([](Gemm& op) { op.bias = tensor({5}, kBf16); }), "no bias");
  const Gemm weight{.c = tensor({6, 5}),
                    .a = tensor({7, 6}),
                    .b = tensor({7, 5}),
                    .trans_a = true,
                    .bias_grad = tensor({6})};
  expect_refused(weight, Spoil([](Gemm& op) { op.bias_grad = tensor({5}); }), "bias_grad [m]");
  expect_refused(weight, Spoil([](Gemm& op) { op.bias_grad = tensor({6}, kBf16); }), "bias_grad [m]");
  expect_refused(weight, Spoil([](Gemm& op) { op.bias = tensor({5}); }), "no bias");
  expect_refused(weight, Spoil([](Gemm& op) { op.a = tensor({6, 7}), op.trans_a = false; }), "trans_a only");
}

TEST(BiasGradCheck, RefusesAnotherWidth) {
  const BiasGrad good{.dbias = tensor({5}), .dy = tensor({3, 5}, kBf16)};
  using Spoil = std::function<void(BiasGrad&)>;
  expect_refused(good, Spoil([](BiasGrad& op) { op.dbias = tensor({3}); }), "dbias [h]");
  expect_refused(good, Spoil([](BiasGrad& op) { op.dbias = tensor({5}, kBf16); }), "dbias [h]");
}

TEST(NormCheck, RefusesWrongShapes) {
  const LayerNorm good{.y = tensor({3, 5}), .x = tensor({3, 5}), .w = tensor({5}), .b = tensor({5})};
  using Spoil = std::function<void(LayerNorm&)>;
  expect_refused(good, Spoil([](LayerNorm& op) { op.y = tensor({5, 3}); }), "y and x alike");
  expect_refused(good, Spoil([](LayerNorm& op) { op.w = tensor({3}); }), "w [h]");
  expect_refused(good, Spoil([](LayerNorm& op) { op.b = {}; }), "b [h]");
  expect_refused(good, Spoil([](LayerNorm& op) { op.mean = tensor({5}); }), "mean [m]");
  expect_refused(good, Spoil([](LayerNorm& op) { op.rstd = tensor({3}, kBf16); }), "rstd [m]");
  expect_refused(good, Spoil([](LayerNorm& op) { op.residual = tensor({3, 5}); }), "residual and sum");
  expect_refused(good, Spoil([](LayerNorm& op) {
                   op.residual = tensor({5}), op.sum = tensor({3, 5});
                 }),
                 "residual and x");
  const DropoutKey key{.p = 0.1f, .samples = tensor({2}, kI64)};
  expect_refused(good, Spoil([&](LayerNorm& op) { op.dropout = key; }), "a residual with dropout");
  const View x = tensor({3, 2, 5});
  const LayerNorm joined{
      .y = x, .x = x, .w = tensor({5}), .b = tensor({5}), .residual = x, .sum = x, .dropout = key};
  expect_refused(joined, Spoil([](LayerNorm& op) { op.dropout.p = 1; }), "a dropout probability");
  expect_refused(joined, Spoil([](LayerNorm& op) { op.dropout.samples = tensor({3}, kI64); }),
                 "one sample number");

  const RmsNorm rms{.y = tensor({3, 5}), .x = tensor({3, 5}), .w = tensor({5})};
  expect_refused(rms, std::function<void(RmsNorm&)>([](RmsNorm& op) { op.w = tensor({5}, kBf16); }), "w [h]");
  expect_refused(rms, std::function<void(RmsNorm&)>([](RmsNorm& op) {
                   op.part = {1, 2, 2};
                 }),
                 "a part within its group of rows");
  expect_refused(rms, std::function<void(RmsNorm&)>([](RmsNorm& op) {
                   op.part = {0, 1, 2};
                 }),
                 "whole groups of rows");
  const std::function<void(RmsNorm&)> with_residual = [](RmsNorm& op) {
    op.residual = op.sum = tensor({3, 5});
    op.part = {0, 1, 3};
  };
  expect_refused(rms, with_residual, "all rows with a residual");
}

TEST(SoftmaxLossCheck, RefusesWrongShapes) {
  const View rows = tensor({3});
  const SoftmaxLoss good{.loss = rows,
                         .logits = tensor({3, 8}, kBf16),
                         .max = rows,
                         .sum_exp = rows,
                         .targets = tensor({3}, kI32),
                         .columns = 7};
  using Spoil = std::function<void(SoftmaxLoss&)>;
  expect_refused(good, Spoil([](SoftmaxLoss& op) { op.columns = 0; }), "at least one column");
  for (const Spoil& spoil :
       {Spoil([](SoftmaxLoss& op) { op.columns = 9; }), Spoil([](SoftmaxLoss& op) { op.max = {}; }),
        Spoil([](SoftmaxLoss& op) { op.targets = tensor({2}, kI32); })}) {
    SoftmaxLoss op = good;
    spoil(op);
    EXPECT_THROW(op.check(), Error);
  }
}

// With 4 rows and 3 ids, at most 3 rows of the table get a gradient, and 2 positions do.
TEST(EmbeddingGradCost, CountsEachRowOnce) {
  EmbeddingGrad op{.dtable = tensor({3, 10}),
                   .dpositions = {},
                   .dy = tensor({2, 2, 10}, kBf16),
                   .ids = tensor({2, 2}, kI32)};
  EXPECT_EQ(op.cost().bytes, 80 + 16 + 2 * 3 * 40);
  op.dpositions = tensor({5, 10});
  EXPECT_EQ(op.cost().bytes, 160 + 16 + 2 * (3 + 2) * 40);
}

TEST(NormGradCheck, RefusesWrongShapes) {
  const LayerNormGrad good{.dx = tensor({3, 5}),
                           .dw = tensor({5}),
                           .db = {},
                           .dy = tensor({3, 5}),
                           .x = tensor({3, 5}),
                           .w = tensor({5}),
                           .mean = tensor({3}),
                           .rstd = tensor({3})};
  using Spoil = std::function<void(LayerNormGrad&)>;
  expect_refused(good, Spoil([](LayerNormGrad& op) { op.dx = {}; }), "dx and dy");
  expect_refused(good, Spoil([](LayerNormGrad& op) { op.x = tensor({4, 5}); }), "x and dy");
  expect_refused(good, Spoil([](LayerNormGrad& op) { op.mean = {}; }), "mean [m]");
  expect_refused(good, Spoil([](LayerNormGrad& op) { op.rstd = tensor({5}); }), "rstd [m]");
  expect_refused(good, Spoil([](LayerNormGrad& op) { op.dw = tensor({3}); }), "dw [h]");
  expect_refused(good, Spoil([](LayerNormGrad& op) { op.db = tensor({5}, kBf16); }), "db [h]");
  expect_refused(good, Spoil([](LayerNormGrad& op) { op.add = tensor({3, 6}); }), "add and dy");

  const RmsNormGrad rms{.dx = tensor({3, 5}),
                        .dw = {},
                        .dy = tensor({3, 5}),
                        .x = tensor({3, 5}),
                        .w = tensor({5}),
                        .rstd = tensor({3})};
  expect_refused(rms, std::function<void(RmsNormGrad&)>([](RmsNormGrad& op) { op.rstd = {}; }), "rstd [m]");
}

TEST(ActivationCheck, RefusesWrongShapes) {
  const Activate gelu{.y = tensor({3, 5}), .x = tensor({3, 5})};
  expect_refused(gelu, std::function<void(Activate&)>([](Activate& op) {
                   op.y = tensor({3, 5}, kBf16);
                 }),
                 "y and x");
  const ActivateGrad gelu_grad{.dx = tensor({3, 5}), .dy = tensor({3, 5}), .x = tensor({3, 5})};
  expect_refused(gelu_grad, std::function<void(ActivateGrad&)>([](ActivateGrad& op) { op.dy = tensor({5}); }),
                 "dy and x");
  const SwiGlu swiglu{.y = tensor({3, 5}), .x = tensor({3, 2, 5})};
  expect_refused(swiglu, std::function<void(SwiGlu&)>([](SwiGlu& op) {
                   op.x = tensor({3, 5});
                 }),
                 "x [n, 2, f]");
  const SwiGluGrad grad{.dx = tensor({3, 2, 5}), .dy = tensor({3, 5}), .x = tensor({3, 2, 5})};
  expect_refused(grad, std::function<void(SwiGluGrad&)>([](SwiGluGrad& op) {
                   op.dx = tensor({3, 5});
                 }),
                 "dx and x");
}

TEST(DropoutCheck, RefusesProbabilityOneAndMissingSamples) {
  const Dropout good{
      .y = tensor({3, 2, 5}), .x = tensor({3, 2, 5}), .key = {.p = 0.1f, .samples = tensor({2}, kI64)}};
  using Spoil = std::function<void(Dropout&)>;
  expect_refused(good, Spoil([](Dropout& op) { op.key.p = 1; }), "probability");
  expect_refused(good, Spoil([](Dropout& op) { op.key.p = -0.1f; }), "probability");
  expect_refused(good, Spoil([](Dropout& op) { op.key.samples = {}; }), "sample number");
  expect_refused(good, Spoil([](Dropout& op) { op.key.samples = tensor({3}, kI64); }), "sample number");
  expect_refused(good, Spoil([](Dropout& op) { op.key.site = 16; }), "site");
  expect_refused(good, Spoil([](Dropout& op) { op.residual = tensor({3, 2, 4}); }), "residual and x");
  Dropout none = good;
  none.key = {};
  EXPECT_NO_THROW(none.check());
}

TEST(AttentionCheck, RefusesWrongShapes) {
  const Attention good{
      .out = tensor({7, 2, 6, 8}), .qkv = tensor({7, 2, 3, 4, 8}), .scale = 1, .lse = tensor({2, 6, 7})};
  using Spoil = std::function<void(Attention&)>;
  expect_refused(good, Spoil([](Attention& op) { op.qkv = tensor({7, 2, 3, 2, 8}); }), "r >= 1");
  expect_refused(good, Spoil([](Attention& op) { op.out = tensor({7, 2, 3, 8}); }), "out [s, b");
  expect_refused(good, Spoil([](Attention& op) { op.out.dtype = kBf16; }), "out [s, b");
  expect_refused(good, Spoil([](Attention& op) { op.lse = tensor({2, 7}); }), "lse");
  expect_refused(good, Spoil([](Attention& op) { op.dropout.p = 0.5f; }), "sample number");
  expect_refused(good, Spoil([](Attention& op) { op.rows.first = 1; }), "all positions without kv");
  expect_refused(good, Spoil([](Attention& op) { op.kv = tensor({9, 2, 3, 3, 8}); }), "kv [s_total");
  expect_refused(good, Spoil([](Attention& op) {
                   op.kv = tensor({9, 2, 3, 2, 8});
                   op.rows = {.first = 0, .split = 3, .jump = 3};
                 }),
                 "within kv");

  const AttentionGrad grad{.dqkv = tensor({7, 2, 3, 4, 8}),
                           .dout = tensor({7, 2, 6, 8}),
                           .out = tensor({7, 2, 6, 8}),
                           .qkv = tensor({7, 2, 3, 4, 8}),
                           .lse = tensor({2, 6, 7}),
                           .scale = 1};
  using SpoilGrad = std::function<void(AttentionGrad&)>;
  expect_refused(grad, SpoilGrad([](AttentionGrad& op) { op.dqkv = tensor({7, 2, 3, 8}); }), "dqkv and qkv");
  expect_refused(grad, SpoilGrad([](AttentionGrad& op) { op.dout = tensor({7, 2, 6, 7}); }), "dout");
  expect_refused(grad, SpoilGrad([](AttentionGrad& op) { op.lse = {}; }), "lse");
  expect_refused(grad, SpoilGrad([](AttentionGrad& op) { op.kv = tensor({9, 2, 3, 2, 8}); }), "dkv and kv");

  const CopyKeyValues copy{.to = tensor({7, 2, 3, 2, 8}), .from = tensor({7, 2, 3, 4, 8})};
  using SpoilCopy = std::function<void(CopyKeyValues&)>;
  expect_refused(copy, SpoilCopy([](CopyKeyValues& op) { op.to = tensor({7, 2, 3, 1, 8}); }), "2 or more");
  expect_refused(copy, SpoilCopy([](CopyKeyValues& op) { op.from = tensor({7, 2, 2, 4, 8}); }), "2 or more");
  expect_refused(copy, SpoilCopy([](CopyKeyValues& op) { op.from.dtype = kBf16; }), "of to's dtype");

  const CachedAttention cached{.out = tensor({2, 1, 6, 8}),
                               .k_cache = tensor({1, 3, 10, 8}),
                               .v_cache = tensor({1, 3, 10, 8}),
                               .qkv = tensor({2, 1, 3, 4, 8}),
                               .past = 8,
                               .scale = 1};
  using SpoilCached = std::function<void(CachedAttention&)>;
  expect_refused(cached, SpoilCached([](CachedAttention& op) { op.past = 9; }), "past + t within the cache");
  expect_refused(cached, SpoilCached([](CachedAttention& op) {
                   op.v_cache = tensor({1, 3, 9, 8});
                 }),
                 "k_cache and v_cache");
  expect_refused(cached, SpoilCached([](CachedAttention& op) { op.k_cache.dtype = kBf16; }), "k_cache");

  const Rope rope{
      .qkv = tensor({7, 2, 3, 4, 8}), .cos = tensor({9, 4}), .sin = tensor({9, 4}), .rows = {.first = 2}};
  using SpoilRope = std::function<void(Rope&)>;
  expect_refused(rope, SpoilRope([](Rope& op) { op.rows.first = 3; }), "within the table");
  expect_refused(rope, SpoilRope([](Rope& op) { op.rows = {.first = 0, .split = 4, .jump = 3}; }),
                 "within the table");
  expect_refused(rope, SpoilRope([](Rope& op) { op.cos = op.sin = tensor({9, 5}); }), "within a head");
  expect_refused(rope, SpoilRope([](Rope& op) { op.sin = tensor({9, 3}); }), "cos and sin");
}

TEST(EmbeddingCheck, RefusesWrongShapes) {
  const Embedding good{.y = tensor({3, 2, 5}),
                       .ids = tensor({3, 2}, kI32),
                       .table = tensor({11, 5}),
                       .positions = tensor({4, 5}),
                       .rows = {.first = 1}};
  using Spoil = std::function<void(Embedding&)>;
  expect_refused(good, Spoil([](Embedding& op) { op.rows.first = 2; }), "within positions");
  expect_refused(good, Spoil([](Embedding& op) { op.rows.first = -1; }), "within positions");
  expect_refused(good, Spoil([](Embedding& op) { op.table = tensor({11, 6}); }), "equal widths");
  expect_refused(good, Spoil([](Embedding& op) { op.ids = tensor({3, 2}, kI64); }), "one id per row");
  const EmbeddingGrad grad{.dtable = tensor({11, 5}),
                           .dpositions = {},
                           .dy = tensor({3, 2, 5}, kBf16),
                           .ids = tensor({3, 2}, kI32)};
  using SpoilGrad = std::function<void(EmbeddingGrad&)>;
  expect_refused(grad, SpoilGrad([](EmbeddingGrad& op) { op.dtable = tensor({11, 5}, kBf16); }), "dtable");
  expect_refused(grad, SpoilGrad([](EmbeddingGrad& op) {
                   op.dpositions = tensor({2, 5});
                 }),
                 "within positions");
}

TEST(LossCheck, RefusesWrongShapes) {
  const SoftmaxStats stats{
      .max = tensor({3}), .sum_exp = tensor({3}), .logits = tensor({3, 8}), .columns = 7};
  expect_refused(stats, std::function<void(SoftmaxStats&)>([](SoftmaxStats& op) { op.columns = 9; }),
                 "columns");
  const SoftmaxRescale rescale{.sum_exp = tensor({3}), .from = tensor({3}), .to = tensor({3})};
  using SpoilRescale = std::function<void(SoftmaxRescale&)>;
  expect_refused(rescale, SpoilRescale([](SoftmaxRescale& op) { op.from = tensor({4}); }), "from");
  expect_refused(rescale, SpoilRescale([](SoftmaxRescale& op) { op.to = {}; }), "to");
  const CrossEntropy good{.loss = tensor({3}),
                          .logits = tensor({3, 8}),
                          .max = tensor({3}),
                          .sum_exp = tensor({3}),
                          .targets = tensor({3}, kI32),
                          .columns = 8};
  using Spoil = std::function<void(CrossEntropy&)>;
  expect_refused(good, Spoil([](CrossEntropy& op) { op.targets = tensor({4}, kI32); }), "targets");
  expect_refused(good, Spoil([](CrossEntropy& op) { op.mask = tensor({3}, kBf16); }), "mask");
  expect_refused(good, Spoil([](CrossEntropy& op) { op.loss = {}; }), "loss");
  expect_refused(good, Spoil([](CrossEntropy& op) { op.scale_at = tensor({2}); }), "scale_at [1]");
}

TEST(StepCheck, RefusesWrongShapes) {
  const ScaledSum sum{.out = tensor({1}, DType::kF64), .x = tensor({9}), .scale = 1};
  using SpoilSum = std::function<void(ScaledSum&)>;
  expect_refused(sum, SpoilSum([](ScaledSum& op) { op.out = tensor({2}, DType::kF64); }), "out [1]");
  expect_refused(sum, SpoilSum([](ScaledSum& op) { op.x = tensor({9}, kBf16); }), "x present and fp32");
  expect_refused(sum, SpoilSum([](ScaledSum& op) { op.scale_at = tensor({1}, kBf16); }), "scale_at [1]");
  const DecideStep decide{.scalars = tensor({StepScalar::kCount}, DType::kF64), .max_norm = 1};
  using SpoilStep = std::function<void(DecideStep&)>;
  expect_refused(decide, SpoilStep([](DecideStep& op) { op.scalars = tensor({StepScalar::kCount}); }),
                 "scalars");
  expect_refused(decide, SpoilStep([](DecideStep& op) { op.max_norm = -1; }), "max_norm of 0 or more");
}

TEST(OptimizerCheck, RefusesWrongShapes) {
  const SumSquares sum{.out = tensor({1}, DType::kF64), .x = tensor({9})};
  expect_refused(sum, std::function<void(SumSquares&)>([](SumSquares& op) { op.out = tensor({1}); }),
                 "out [1]");
  const AdamW good{.master = tensor({9}),
                   .m = tensor({9}),
                   .v = tensor({9}),
                   .grad = tensor({9}),
                   .scalars = tensor({StepScalar::kCount}, DType::kF64),
                   .beta1 = 0.9,
                   .beta2 = 0.95,
                   .eps = 1e-8,
                   .weight_decay = 0};
  using Spoil = std::function<void(AdamW&)>;
  expect_refused(good, Spoil([](AdamW& op) { op.scalars = {}; }), "scalars");
  expect_refused(good, Spoil([](AdamW& op) { op.scalars = tensor({4}, DType::kF64); }), "scalars");
  expect_refused(good, Spoil([](AdamW& op) { op.m = tensor({8}); }), "m [n]");
  expect_refused(good, Spoil([](AdamW& op) { op.m = tensor({9}, DType::kF16); }), "m [n]");
  expect_refused(good, Spoil([](AdamW& op) { op.v = tensor({9}, kBf16); }), "v [n]");
  AdamW narrow = good;
  narrow.m = tensor({9}, kBf16);
  EXPECT_NO_THROW(narrow.check());
  expect_refused(good, Spoil([](AdamW& op) { op.grad.dtype = kBf16; }), "grad [n]");
  expect_refused(good, Spoil([](AdamW& op) { op.value = tensor({9}); }), "value bf16 or fp16");
}

}  // namespace
}  // namespace megalith
