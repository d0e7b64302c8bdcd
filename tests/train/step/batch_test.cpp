#include "libcore/train/step/batch.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/model/ctx.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {
namespace {

// A reader of numbers: sample i has the tokens 100 i, 100 i + 1, …; each label is the token plus 1; the loss
// mask is 0 in the last `cut` positions.
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

// The batch grows from 4 to 8 samples, so each of the 2 ranks has 1 microbatch, then 2.
TEST(Batch, GrowsWithItsRamp) {
  const BatchShape shape{.seq_length = 3,
                         .micro_batch = 2,
                         .microbatches = 2,
                         .data_rank = 1,
                         .data_size = 2,
                         .ramp = BatchRamp{.start = 4, .increment = 4, .samples = 8}};
  Loaded loaded(shape);
  int64_t consumed = 0;
  for (const size_t count : {1U, 1U, 2U, 2U}) {
    loaded.batch.load(loaded.stream, numbers(), consumed);
    const auto microbatches = loaded.batch.microbatches();
    ASSERT_EQ(microbatches.size(), count) << consumed;
    EXPECT_EQ(host<int64_t>(loaded.stream, microbatches[0].samples),
              (std::vector<int64_t>{consumed + 2, consumed + 3}));
    EXPECT_FLOAT_EQ(microbatches[0].grad_scale, 1.0f / static_cast<float>(count * 2 * 6));
    consumed += static_cast<int64_t>(count) * 4;
  }
  loaded.batch.load_now(loaded.stream, numbers(), 0);  // an evaluation always uses the full batch
  EXPECT_EQ(loaded.batch.microbatches().size(), 2U);
}

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

// The expected order is that of MegatronPretrainingSampler with micro_batch 2 and 3 ranks: a block of 6 is
// split into [0 1 | 2 3 | 4 5].
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

// A sample is cut into four chunks of two rows; the first rank gets the first and the last chunk. The counted
// tokens are those of the whole sample.
TEST(Batch, DealsASampleOutOverTheContextRanks) {
  const BatchShape shape{.seq_length = 8, .micro_batch = 2, .microbatches = 1, .context_size = 2};
  BatchShape second = shape;
  second.context_rank = 1;
  Loaded first(shape), last(second);
  first.batch.load(first.stream, numbers(1), 1);
  last.batch.load(last.stream, numbers(1), 1);
  const Microbatch &a = first.batch.microbatches()[0], &b = last.batch.microbatches()[0];
  EXPECT_EQ(a.tokens.shape, (Shape{4, 2}));
  EXPECT_EQ(host<int32_t>(first.stream, a.tokens),
            (std::vector<int32_t>{100, 200, 101, 201, 106, 206, 107, 207}));
  EXPECT_EQ(host<int32_t>(last.stream, b.labels),
            (std::vector<int32_t>{103, 203, 104, 204, 105, 205, 106, 206}));
  EXPECT_EQ(host<float>(first.stream, a.loss_mask), (std::vector<float>{1, 1, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(host<int64_t>(last.stream, b.samples), (std::vector<int64_t>{1, 2}));
  EXPECT_FLOAT_EQ(a.grad_scale, 1.0f / 14);
  EXPECT_FLOAT_EQ(b.grad_scale, 1.0f / 14);
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

/// Records the numbers of the samples that a reader is asked for, from any thread.
class Asked {
 public:
  /// Returns a reader that records each number and then calls `from`.
  SampleReader noting(SampleReader from) {
    return [this, from = std::move(from)](int64_t index, const SampleView& out) {
      {
        const std::lock_guard lock(mutex_);
        numbers_.push_back(index);
      }
      grown_.notify_all();
      from(index, out);
    };
  }
  /// Waits up to a minute until `count` numbers are recorded. Returns the first `count` of them, or fewer
  /// after a minute.
  std::vector<int64_t> first(size_t count) {
    std::unique_lock lock(mutex_);
    grown_.wait_for(lock, std::chrono::minutes(1), [&] { return numbers_.size() >= count; });
    return numbers_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable grown_;
  std::vector<int64_t> numbers_;
};

std::vector<int64_t> loaded_numbers(Loaded& loaded) {
  std::vector<int64_t> out;
  for (const Microbatch& microbatch : loaded.batch.microbatches())
    for (const int64_t number : host<int64_t>(loaded.stream, microbatch.samples)) out.push_back(number);
  return out;
}

// Rank 1 of 2, with 2 microbatches of 2 samples: of every 8 samples, it reads numbers 2, 3, 6 and 7.
constexpr BatchShape kHalf = {
    .seq_length = 5, .micro_batch = 2, .microbatches = 2, .data_rank = 1, .data_size = 2};

TEST(Batch, ReadsTheNextStepWithoutBeingAsked) {
  Asked asked;
  Loaded loaded(kHalf);
  const SampleReader reader = asked.noting(numbers());
  loaded.batch.load(loaded.stream, reader, 0);
  EXPECT_EQ(asked.first(8), (std::vector<int64_t>{2, 3, 6, 7, 10, 11, 14, 15}));
  // The batch still holds this step's samples.
  EXPECT_EQ(loaded_numbers(loaded), (std::vector<int64_t>{2, 3, 6, 7}));
  loaded.batch.load(loaded.stream, reader, 8);
  EXPECT_EQ(loaded_numbers(loaded), (std::vector<int64_t>{10, 11, 14, 15}));
  EXPECT_EQ(host<int32_t>(loaded.stream, loaded.batch.microbatches()[1].tokens),
            (std::vector<int32_t>{1400, 1500, 1401, 1501, 1402, 1502, 1403, 1503, 1404, 1504}));
  EXPECT_EQ(asked.first(12),
            (std::vector<int64_t>{2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23}));  // each sample was read once
}

TEST(Batch, LoadsTheSameStepsWithAndWithoutReadingAhead) {
  Loaded ahead(kHalf), now(kHalf);
  for (int64_t consumed = 0; consumed < 80; consumed += 8) {
    ahead.batch.load(ahead.stream, numbers(1), consumed);
    now.batch.load_now(now.stream, numbers(1), consumed);
    for (size_t m = 0; m < 2; ++m) {
      const Microbatch &a = ahead.batch.microbatches()[m], &b = now.batch.microbatches()[m];
      EXPECT_EQ(host<int32_t>(ahead.stream, a.tokens), host<int32_t>(now.stream, b.tokens));
      EXPECT_EQ(host<int32_t>(ahead.stream, a.labels), host<int32_t>(now.stream, b.labels));
      EXPECT_EQ(host<float>(ahead.stream, a.loss_mask), host<float>(now.stream, b.loss_mask));
      EXPECT_EQ(a.grad_scale, b.grad_scale);
    }
    EXPECT_EQ(loaded_numbers(ahead), loaded_numbers(now));
  }
}

TEST(Batch, LeavesWhatIsReadAheadToTheNextStep) {
  Asked asked;
  Loaded loaded(kHalf);
  const SampleReader reader = asked.noting(numbers());
  loaded.batch.load(loaded.stream, reader, 0);
  loaded.batch.load_now(loaded.stream, numbers(2), 8);  // an evaluation whose samples have the same numbers
  EXPECT_TRUE(loaded.batch.microbatches()[0].loss_mask);
  loaded.batch.load(loaded.stream, reader, 8);
  EXPECT_FALSE(loaded.batch.microbatches()[0].loss_mask);
  EXPECT_EQ(loaded_numbers(loaded), (std::vector<int64_t>{10, 11, 14, 15}));
  EXPECT_EQ(asked.first(12).size(), 12U);
}

TEST(Batch, LoadsAnotherStepThanTheNext) {
  Loaded loaded(kHalf);
  loaded.batch.load(loaded.stream, numbers(), 0);
  loaded.batch.load(loaded.stream, numbers(), 800);
  EXPECT_EQ(loaded_numbers(loaded), (std::vector<int64_t>{802, 803, 806, 807}));
  loaded.batch.load(loaded.stream, numbers(), 0);
  EXPECT_EQ(loaded_numbers(loaded), (std::vector<int64_t>{2, 3, 6, 7}));
}

TEST(Batch, ThrowsTheReadersErrorForTheStepThatIsLoaded) {
  Asked asked;
  Loaded loaded(kHalf);
  const SampleReader reader = asked.noting([](int64_t index, const SampleView& out) {
    if (index == 14) fail(ErrorKind::kData, "sample 14 is damaged");
    numbers()(index, out);
  });
  EXPECT_NO_THROW(loaded.batch.load(loaded.stream, reader, 0));
  EXPECT_EQ(asked.first(7).back(), 14);  // the read-ahead has failed by now or is about to
  EXPECT_EQ(loaded_numbers(loaded), (std::vector<int64_t>{2, 3, 6, 7}));
  try {
    loaded.batch.load(loaded.stream, reader, 8);
    FAIL() << "the error is lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_STREQ(error.what(), "sample 14 is damaged");
  }
  EXPECT_THROW(loaded.batch.load(loaded.stream, reader, 8), Error);  // loading the step again also throws
  EXPECT_NO_THROW(loaded.batch.load(loaded.stream, reader, 16));
  EXPECT_THROW(loaded.batch.load_now(loaded.stream, reader, 8), Error);
}

// Every tensor begins at a multiple of 256 bytes. There are 2 microbatches and one more for evaluation, each
// with 3 tensors of 5 * 2 * 4 bytes and one of 2 * 8; and twice the 3 tensors of a sample as it is read.
TEST(Batch, CountsTheHostsMemory) {
  EXPECT_EQ(Batch::host_bytes(kHalf), (2 * 4 + 4 + 2 * 3) * 256U);
  BatchShape large = kHalf;
  large.seq_length = 1024;
  large.microbatches = 4;
  EXPECT_EQ(Batch::host_bytes(large), (4 + 1) * (3 * 8192U + 256U) + 2 * 3 * 4096U);
}

/// As numbers(), but sample i has only i % 4 + 1 rows, and its last row does not count.
SampleSource short_numbers() {
  SampleSource source = [](int64_t index, const SampleView& out) {
    const auto rows = static_cast<size_t>(index % 4 + 1);
    for (size_t i = 0; i < rows; ++i) {
      out.tokens[i] = static_cast<int32_t>(100 * index + static_cast<int64_t>(i));
      out.labels[i] = out.tokens[i] + 1;
      out.loss_mask[i] = i + 1 < rows ? 1.0f : 0.0f;
      if (!out.starts.empty()) out.starts[i] = static_cast<int32_t>(i / 2 * 2);
    }
  };
  source.length = [](int64_t index) { return index % 4 + 1; };
  source.counted = [](int64_t index) { return index % 4; };
  return source;
}

TEST(Batch, IsAsLongAsItsLongestSample) {
  Loaded loaded({.seq_length = 8, .micro_batch = 2, .microbatches = 2, .attention_starts = true});
  loaded.batch.load(loaded.stream, short_numbers(), 0);
  const auto microbatches = loaded.batch.microbatches();
  EXPECT_EQ(microbatches[0].tokens.shape, (Shape{2, 2}));
  EXPECT_EQ(host<int32_t>(loaded.stream, microbatches[0].tokens), (std::vector<int32_t>{0, 100, 0, 101}));
  EXPECT_EQ(host<float>(loaded.stream, microbatches[0].loss_mask), (std::vector<float>{0, 1, 0, 0}));
  EXPECT_EQ(microbatches[1].tokens.shape, (Shape{4, 2}));
  EXPECT_EQ(host<int32_t>(loaded.stream, microbatches[1].starts),
            (std::vector<int32_t>{0, 0, 0, 0, 2, 2, 0, 2}));
  EXPECT_FALSE(microbatches[1].position_starts);
  loaded.batch.load(loaded.stream, short_numbers(), 4);  // these samples were read ahead
  EXPECT_EQ(loaded.batch.microbatches()[0].tokens.shape, (Shape{2, 2}));
}

TEST(Batch, LengthsAreMultiplesOfTheLayoutsStep) {
  Loaded loaded({.seq_length = 8, .micro_batch = 1, .microbatches = 3, .length_step = 3});
  loaded.batch.load(loaded.stream, short_numbers(), 1);
  EXPECT_EQ(loaded.batch.microbatches()[0].tokens.shape, (Shape{3, 1}));
  EXPECT_EQ(loaded.batch.microbatches()[2].tokens.shape, (Shape{6, 1}));
}

TEST(Batch, OfASourceThatCountsIsTheMeanOverTheWholeStep) {
  Loaded loaded({.seq_length = 8, .micro_batch = 1, .microbatches = 2, .data_rank = 1, .data_size = 2});
  // The samples of both ranks have 0 + 1 + 2 + 3 counted labels.
  loaded.batch.load(loaded.stream, short_numbers(), 0);
  for (const Microbatch& microbatch : loaded.batch.microbatches())
    EXPECT_FLOAT_EQ(microbatch.grad_scale, 1.0f / 6);
  loaded.batch.load_now(loaded.stream, short_numbers(), 4);
  EXPECT_FLOAT_EQ(loaded.batch.microbatches()[0].grad_scale, 1.0f / 6);
}

}  // namespace
}  // namespace megalith
