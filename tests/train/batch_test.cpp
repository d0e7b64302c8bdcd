#include "libcore/train/batch.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/model/ctx.h"
#include "libcore/ops/backend.h"

namespace megalith {
namespace {

// Sample i is 100 i, 100 i + 1, …; its label is the next number; the mask is 0 for the last `cut` places.
SampleReader numbers(size_t cut = 0) {
  return [cut](int64_t index, const SampleView& out) {
    for (size_t i = 0; i < out.tokens.size(); ++i) {
      out.tokens[i] = static_cast<int32_t>(100 * index + static_cast<int64_t>(i));
      out.labels[i] = out.tokens[i] + 1;
      out.loss_mask[i] = i + cut < out.tokens.size() ? 1.0f : 0.0f;
    }
  };
}

template <class T>
std::vector<T> host(Stream& stream, ConstView view) {
  std::vector<T> out(static_cast<size_t>(view.elements()));
  stream.to_host(out.data(), view);
  return out;
}

struct Loaded {
  explicit Loaded(const BatchShape& shape)
      : stream(backend->make_stream()),
        arena(make_arena(*backend, "batch", Batch::bytes(shape))),
        batch(arena, shape) {}
  std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream;
  Arena arena;
  Batch batch;
};

TEST(Batch, PutsSamplesInColumns) {
  Loaded loaded({.seq_length = 3, .micro_batch = 2, .microbatches = 2});
  loaded.batch.load(loaded.stream, numbers(), 10);
  const auto microbatches = loaded.batch.microbatches();
  ASSERT_EQ(microbatches.size(), 2U);
  EXPECT_EQ(microbatches[0].tokens.shape, (Shape{3, 2}));
  EXPECT_EQ(host<int32_t>(loaded.stream, microbatches[0].tokens),
            (std::vector<int32_t>{1000, 1100, 1001, 1101, 1002, 1102}));
  EXPECT_EQ(host<int32_t>(loaded.stream, microbatches[1].labels),
            (std::vector<int32_t>{1201, 1301, 1202, 1302, 1203, 1303}));
  EXPECT_EQ(host<int64_t>(loaded.stream, microbatches[1].samples), (std::vector<int64_t>{12, 13}));
  EXPECT_FALSE(microbatches[0].loss_mask);
  EXPECT_FLOAT_EQ(microbatches[0].grad_scale, 1.0f / 12);
}

// MegatronPretrainingSampler with micro_batch 2 and 3 ranks: the block of 6 is cut [0 1 | 2 3 | 4 5].
TEST(Batch, DealsBlocksOutOverTheDataRanks) {
  Loaded loaded({.seq_length = 1, .micro_batch = 2, .microbatches = 2, .data_rank = 1, .data_size = 3});
  loaded.batch.load(loaded.stream, numbers(), 100);
  EXPECT_EQ(host<int64_t>(loaded.stream, loaded.batch.microbatches()[0].samples),
            (std::vector<int64_t>{102, 103}));
  EXPECT_EQ(host<int64_t>(loaded.stream, loaded.batch.microbatches()[1].samples),
            (std::vector<int64_t>{108, 109}));
  EXPECT_EQ(loaded.batch.shape().samples(), 12);
  EXPECT_FLOAT_EQ(loaded.batch.microbatches()[0].grad_scale, 1.0f / 12);
}

TEST(Batch, ScalesByTheTokensThatCount) {
  Loaded loaded({.seq_length = 4, .micro_batch = 2, .microbatches = 1});
  loaded.batch.load(loaded.stream, numbers(1), 0);
  const Microbatch& microbatch = loaded.batch.microbatches()[0];
  EXPECT_FLOAT_EQ(microbatch.grad_scale, 1.0f / 6);
  ASSERT_TRUE(microbatch.loss_mask);
  EXPECT_EQ(host<float>(loaded.stream, microbatch.loss_mask), (std::vector<float>{1, 1, 1, 1, 1, 1, 0, 0}));
  loaded.batch.load(loaded.stream, numbers(0), 0);
  EXPECT_FALSE(loaded.batch.microbatches()[0].loss_mask);
}

}  // namespace
}  // namespace megalith
