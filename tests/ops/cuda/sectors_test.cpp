// The memory that the row kernels ask for, counted by the addresses of each warp's accesses on the emulated
// device, against the bytes of the tensors that an op must read and write.
#include <initializer_list>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "tests/ops/case_parts.h"
#include "tests/ops/cuda/counted_cuda.h"

namespace megalith::test {
namespace {

constexpr double kSectorBytes = 32;

/// The bytes of these tensors; an empty view has none.
double bytes_of_all(std::initializer_list<ConstView> views) {
  double sum = 0;
  for (const ConstView& view : views)
    if (view) sum += static_cast<double>(view.bytes());
  return sum;
}

class EmulatedCudaSectors : public CountedCuda<DType> {
 protected:
  View floats(Shape shape) { return bed_->put(GetParam(), shape, random_values(shape.elements(), 1)); }
  View fp32(Shape shape) { return bed_->put(DType::kF32, shape, random_values(shape.elements(), 2)); }
  DropoutKey dropout(int64_t batch) { return dropout_key(*bed_, batch, 0.1f); }

  /// `minimum`: the bytes that the op must read and write, which its price must be.
  template <class Op>
  void expect_least(const std::string& name, const Op& op, double minimum) {
    EXPECT_EQ(op.cost().bytes, minimum) << name;
    const double asked = kSectorBytes * work_of(op).sectors / minimum;
    RecordProperty(name, std::to_string(asked));
    EXPECT_LE(asked, 1.05) << name;
    EXPECT_GE(asked, 1.0) << name << ": an access was not counted";
  }
};
INSTANTIATE_TEST_SUITE_P(Types, EmulatedCudaSectors, testing::Values(DType::kF32, DType::kBf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

// GPT-2 124M's rows, and LLaMA-7B's, which several warps share.
TEST_P(EmulatedCudaSectors, OfNorms) {
  for (const int64_t h : {768, 4096}) {
    const Shape rows{64, 2, h};
    const View x = floats(rows), y = floats(rows), sum = floats(rows), residual = floats(rows);
    const View w = floats({h}), b = floats({h}), mean = fp32({128}), rstd = fp32({128});
    const std::string width = "_" + std::to_string(h);
    LayerNorm layer{.y = y, .x = x, .w = w, .b = b, .mean = mean, .rstd = rstd};
    RmsNorm rms{.y = y, .x = x, .w = w, .rstd = rstd};
    expect_least("layer_norm" + width, layer, bytes_of_all({x, y, w, b, mean, rstd}));
    expect_least("rms_norm" + width, rms, bytes_of_all({x, y, w, rstd}));
    layer.residual = rms.residual = residual;
    layer.sum = rms.sum = sum;
    expect_least("residual_layer_norm" + width, layer, bytes_of_all({x, residual, sum, y, w, b, mean, rstd}));
    expect_least("residual_rms_norm" + width, rms, bytes_of_all({x, residual, sum, y, w, rstd}));
    layer.dropout = rms.dropout = dropout(2);
    expect_least("dropout_residual_layer_norm" + width, layer,
                 bytes_of_all({x, residual, sum, y, w, b, mean, rstd}));
    expect_least("dropout_residual_rms_norm" + width, rms, bytes_of_all({x, residual, sum, y, w, rstd}));
  }
}

TEST_P(EmulatedCudaSectors, OfGradientsOfNorms) {
  for (const int64_t h : {768, 4096}) {
    const Shape rows{128, h};
    const View x = floats(rows), dy = floats(rows), dx = floats(rows), add = floats(rows);
    const View w = floats({h}), mean = fp32({128}), rstd = fp32({128}), dw = fp32({h}), db = fp32({h});
    const std::string width = "_" + std::to_string(h);
    expect_least(
        "layer_norm_grad" + width,
        LayerNormGrad{
            .dx = dx, .dw = dw, .db = db, .dy = dy, .x = x, .w = w, .mean = mean, .rstd = rstd, .add = add},
        bytes_of_all({x, dy, dx, add, w, mean, rstd, dw, dw, db, db}));
    expect_least("rms_norm_grad" + width,
                 RmsNormGrad{.dx = dx, .dw = dw, .dy = dy, .x = x, .w = w, .rstd = rstd, .add = add},
                 bytes_of_all({x, dy, dx, add, w, rstd, dw, dw}));
  }
}

// The logits' padding is written, but has no gradient.
TEST_P(EmulatedCudaSectors, OfTheLoss) {
  constexpr int64_t kRows = 4, kColumns = 16101, kPadded = 16128;
  const View logits = floats({kRows, kPadded}), loss = fp32({kRows}), max = fp32({kRows}),
             sum_exp = fp32({kRows}), mask = fp32({kRows});
  SoftmaxLoss op{.loss = loss,
                 .logits = logits,
                 .max = max,
                 .sum_exp = sum_exp,
                 .targets = bed_->put(DType::kI32, {kRows}, some_ids(kRows, kColumns)),
                 .columns = kColumns,
                 .mask = mask,
                 .want_grad = false};
  const double rest = bytes_of_all({loss, max, sum_exp, mask, op.targets});
  expect_least("softmax_loss_without_grad", op, bytes_of_all({logits}) + rest);
  op.want_grad = true;
  expect_least("softmax_loss", op, bytes_of_all({logits, logits}) + rest);
}

TEST_P(EmulatedCudaSectors, OfActivationsAndDropout) {
  const View gate = floats({32, 2, 2752}), y = floats({32, 2752}), dx = floats({32, 2, 2752});
  expect_least("swiglu", SwiGlu{.y = y, .x = gate}, bytes_of_all({gate, y}));
  expect_least("swiglu_grad", SwiGluGrad{.dx = dx, .dy = y, .x = gate}, bytes_of_all({gate, y, dx}));
  const View x = floats({64, 2, 768}), residual = floats({64, 2, 768}), out = floats({64, 2, 768});
  expect_least("dropout", Dropout{.y = out, .x = x, .key = dropout(2)}, bytes_of_all({x, out}));
  expect_least("dropout_residual", Dropout{.y = out, .x = x, .key = dropout(2), .residual = residual},
               bytes_of_all({x, residual, out}));
}

// LLaMA-7B's heads. Each sequence of a row reads the row's cosines and sines.
TEST_P(EmulatedCudaSectors, OfRope) {
  constexpr int64_t kRows = 8, kBatch = 2, kGroups = 32, kHead = 128;
  const View qkv = floats({kRows, kBatch, kGroups, 3, kHead}), angles = fp32({kRows, kHead / 2});
  const double rotated = bytes_of_all({qkv}) * 2 / 3;
  expect_least("rope", Rope{.qkv = qkv, .cos = angles, .sin = angles},
               2 * rotated + bytes_of_all({angles, angles}));
}

// Every id occurs once, as often as the price has it.
TEST_P(EmulatedCudaSectors, OfTheEmbedding) {
  constexpr int64_t kRows = 512, kBatch = 2, kTable = kRows * kBatch, kColumns = 768;
  Values all(static_cast<size_t>(kTable));
  std::iota(all.begin(), all.end(), 0.0);
  for (size_t i = 0; i < all.size(); ++i) std::swap(all[i], all[i * 389 % all.size()]);
  const View ids = bed_->put(DType::kI32, {kRows, kBatch}, all);
  const View y = floats({kRows, kBatch, kColumns}), table = floats({kTable, kColumns}),
             places = floats({kRows, kColumns});
  expect_least("embedding", Embedding{.y = y, .ids = ids, .table = table}, bytes_of_all({y, y, ids}));
  expect_least("embedding_with_positions", Embedding{.y = y, .ids = ids, .table = table, .positions = places},
               bytes_of_all({y, y, y, ids}));
  const View dtable = fp32({kTable, kColumns}), dplaces = fp32({kRows, kColumns});
  expect_least("embedding_grad", EmbeddingGrad{.dtable = dtable, .dpositions = {}, .dy = y, .ids = ids},
               bytes_of_all({y, ids, dtable, dtable}));
  expect_least("embedding_grad_with_positions",
               EmbeddingGrad{.dtable = dtable, .dpositions = dplaces, .dy = y, .ids = ids},
               bytes_of_all({y, y, ids, dtable, dtable, dplaces, dplaces}));
}

}  // namespace
}  // namespace megalith::test
