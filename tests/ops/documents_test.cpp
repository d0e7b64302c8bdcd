// Documents that share a sequence: each op on a sequence of several documents is compared with the same op on
// each document alone, for each instruction set of the CPU and for the emulated CUDA device.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/ops/cases.h"
#include "tests/ops/instruction_sets.h"
#include "tests/support/emulated_cuda.h"

namespace megalith::test {
namespace {

// Lengths of the documents of each sequence. The kernels process blocks of 128 keys (forward) or 64
// (backward): some documents end within a block, some at its end, and some are longer than a block.
const std::vector<std::vector<int64_t>> kDocuments{{70, 1, 130, 64, 9}, {128, 64, 3, 79}};
constexpr int64_t kLength = 274, kBatch = 2;
const std::string kCuda = "cuda";

/// Compares the results of an op on single documents, one after the other, with the packed result.
class Documents : public InstructionSetTest {
 protected:
  Documents() {
    if (GetParam() == kCuda) backend_ = make_emulated_backend();
  }
  void SetUp() override {
    InstructionSetTest::SetUp();
    if (IsSkipped()) return;
    stream_.emplace(backend_->make_stream());
    bed_.emplace(*stream_, false);
    Values starts(static_cast<size_t>(kLength * kBatch));
    each([&](int64_t sequence, int64_t first, int64_t end) {
      for (int64_t row = first; row < end; ++row)
        starts[static_cast<size_t>(row * kBatch + sequence)] = static_cast<double>(first);
    });
    starts_ = bed_->put(DType::kI32, {kLength, kBatch}, starts);
  }

  template <class Visit>
  static void each(const Visit& visit) {
    for (int64_t sequence = 0; sequence < kBatch; ++sequence) {
      int64_t first = 0;
      for (const int64_t length : kDocuments[static_cast<size_t>(sequence)]) {
        visit(sequence, first, first + length);
        first += length;
      }
      ASSERT_EQ(first, kLength);
    }
  }
  /// Rows [first, end) of one sequence of values [s, b, width].
  static Values document(const Values& all, int64_t sequence, int64_t first, int64_t end) {
    const int64_t width = static_cast<int64_t>(all.size()) / (kLength * kBatch);
    Values out;
    for (int64_t row = first; row < end; ++row) {
      const auto begin = all.begin() + (row * kBatch + sequence) * width;
      out.insert(out.end(), begin, begin + width);
    }
    return out;
  }
  static void expect_equal(const Values& packed, const Values& alone, double tolerance,
                           const std::string& what) {
    EXPECT_EQ(disagreement({what, packed, alone, tolerance}), "");
  }

  std::optional<Stream> stream_;
  std::optional<Bed> bed_;
  View starts_;
};
INSTANTIATE_TEST_SUITE_P(EachInstructionSet, Documents, kInstructionSets, instruction_set_name);
INSTANTIATE_TEST_SUITE_P(EmulatedCuda, Documents, testing::Values(kCuda.c_str()), instruction_set_name);

double tolerance(DType dtype) {
  // Packed and single documents are summed in blocks that begin at different keys.
  return dtype == DType::kF32 ? 2e-6 : 0x1p-7;
}

TEST_P(Documents, AttentionSeesNoOtherDocument) {
  for (const DType dtype : {DType::kF32, DType::kBf16})
    for (const int64_t head : {17, 32}) {
      const auto packed_shape = [&](int64_t s, int64_t b) { return Shape{s, b, 2, 4, head}; };
      const auto out_shape = [&](int64_t s, int64_t b) { return Shape{s, b, 4, head}; };
      Values qkv = random_values(kLength * kBatch * 8 * head, 1, 1.5);
      Values dout = random_values(kLength * kBatch * 4 * head, 2);
      const auto run_both = [&](Values& q, Values& d, int64_t s, int64_t b, ConstView starts) {
        const View in = bed_->put(dtype, packed_shape(s, b), q), dy = bed_->put(dtype, out_shape(s, b), d);
        const View out = bed_->empty(dtype, out_shape(s, b)), dqkv = bed_->empty(dtype, packed_shape(s, b));
        const View lse = bed_->empty(DType::kF32, {b, 4, s});
        run(*stream_, Attention{.out = out, .qkv = in, .scale = 0.2f, .lse = lse, .starts = starts});
        run(*stream_, AttentionGrad{.dqkv = dqkv,
                                    .dout = dy,
                                    .out = out,
                                    .qkv = in,
                                    .lse = lse,
                                    .scale = 0.2f,
                                    .starts = starts});
        return std::pair(bed_->get(out), bed_->get(dqkv));
      };
      const std::pair<Values, Values> all = run_both(qkv, dout, kLength, kBatch, starts_);
      each([&](int64_t sequence, int64_t first, int64_t end) {
        Values q = document(qkv, sequence, first, end), d = document(dout, sequence, first, end);
        const auto [alone, dalone] = run_both(q, d, end - first, 1, {});
        expect_equal(document(all.first, sequence, first, end), alone, tolerance(dtype), "out");
        expect_equal(document(all.second, sequence, first, end), dalone, tolerance(dtype) * 4, "dqkv");
      });
    }
}

// A row with a window must have the output of the last row of a sequence that begins where its window does,
// and its gradient must reach the same rows. The windows begin within blocks of keys and at their ends.
TEST_P(Documents, AttentionSeesItsWindow) {
  constexpr int64_t kWindow = 70, kHead = 24;
  for (const DType dtype : {DType::kF32, DType::kBf16})
    for (const int64_t row : {int64_t{0}, kWindow - 1, kWindow, int64_t{133}, int64_t{197}, kLength - 1}) {
      const int64_t first = std::max<int64_t>(0, row + 1 - kWindow), rows = row + 1 - first;
      Values qkv = random_values(kLength * kBatch * 8 * kHead, 1, 1.5);
      Values dout(static_cast<size_t>(kLength * kBatch * 4 * kHead));  // the loss is that of this row
      const Values own = random_values(kBatch * 4 * kHead, 2);
      std::copy(own.begin(), own.end(), dout.begin() + row * kBatch * 4 * kHead);
      const auto run_both = [&](Values q, Values d, int64_t s, int64_t b, int64_t window) {
        const View in = bed_->put(dtype, {s, b, 2, 4, kHead}, q), dy = bed_->put(dtype, {s, b, 4, kHead}, d);
        const View out = bed_->empty(dtype, {s, b, 4, kHead}), dqkv = bed_->empty(dtype, in.shape);
        const View lse = bed_->empty(DType::kF32, {b, 4, s});
        run(*stream_, Attention{.out = out, .qkv = in, .scale = 0.2f, .lse = lse, .window = window});
        run(*stream_, AttentionGrad{.dqkv = dqkv,
                                    .dout = dy,
                                    .out = out,
                                    .qkv = in,
                                    .lse = lse,
                                    .scale = 0.2f,
                                    .window = window});
        return std::pair(bed_->get(out), bed_->get(dqkv));
      };
      const auto [out, dqkv] = run_both(qkv, dout, kLength, kBatch, kWindow);
      for (int64_t sequence = 0; sequence < kBatch; ++sequence) {
        const auto [alone, dalone] = run_both(document(qkv, sequence, first, row + 1),
                                              document(dout, sequence, first, row + 1), rows, 1, 0);
        const Values last(alone.end() - 4 * kHead, alone.end());
        expect_equal(document(out, sequence, row, row + 1), last, tolerance(dtype), "out");
        expect_equal(document(dqkv, sequence, first, row + 1), dalone, tolerance(dtype) * 4, "dqkv");
        const Values unseen = document(dqkv, sequence, 0, first);
        EXPECT_TRUE(std::all_of(unseen.begin(), unseen.end(), [](double x) { return x == 0; })) << row;
      }
    }
}

TEST_P(Documents, PositionsCountFromTheDocumentsFirstRow) {
  constexpr int64_t kHead = 24, kHalf = 9;
  Values angles(static_cast<size_t>(kLength * kHalf)), qkv = random_values(kLength * kBatch * 4 * kHead, 1);
  for (size_t i = 0; i < angles.size(); ++i) angles[i] = std::cos(0.7 * static_cast<double>(i));
  const View table = bed_->put(DType::kF32, {kLength, kHalf}, angles);
  const auto rotated = [&](Values values, int64_t s, int64_t b, ConstView starts, bool inverse) {
    const View view = bed_->put(DType::kF32, {s, b, 1, 4, kHead}, values);
    run(*stream_, Rope{.qkv = view, .cos = table, .sin = table, .inverse = inverse, .starts = starts});
    return bed_->get(view);
  };
  for (const bool inverse : {false, true}) {
    const Values packed = rotated(qkv, kLength, kBatch, starts_, inverse);
    each([&](int64_t sequence, int64_t first, int64_t end) {
      expect_equal(document(packed, sequence, first, end),
                   rotated(document(qkv, sequence, first, end), end - first, 1, {}, inverse), 1e-7,
                   "rotated");
    });
  }
}

TEST_P(Documents, LearnedPositionsBeginAnew) {
  constexpr int64_t kWidth = 5, kWords = 7;
  Values ids(static_cast<size_t>(kLength * kBatch)), words = random_values(kWords * kWidth, 1);
  Values positions = random_values(kLength * kWidth, 2), dy = random_values(kLength * kBatch * kWidth, 3);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<double>(i * 5 % kWords);
  const View table = bed_->put(DType::kF32, {kWords, kWidth}, words);
  const View places = bed_->put(DType::kF32, {kLength, kWidth}, positions);
  const auto zeros = [&](int64_t rows) {
    return bed_->put(DType::kF32, {rows, kWidth}, Values(static_cast<size_t>(rows * kWidth)));
  };
  const View dtable = zeros(kWords), dplaces = zeros(kLength), alone_dplaces = zeros(kLength);
  const auto look_up = [&](Values id, Values d, int64_t s, int64_t b, ConstView starts, View dpositions) {
    const View y = bed_->empty(DType::kF32, {s, b, kWidth}), in = bed_->put(DType::kI32, {s, b}, id);
    run(*stream_, Embedding{.y = y, .ids = in, .table = table, .positions = places, .starts = starts});
    run(*stream_, EmbeddingGrad{.dtable = dtable,
                                .dpositions = dpositions,
                                .dy = bed_->put(DType::kF32, {s, b, kWidth}, d),
                                .ids = in,
                                .starts = starts});
    return bed_->get(y);
  };
  const Values packed = look_up(ids, dy, kLength, kBatch, starts_, dplaces);
  each([&](int64_t sequence, int64_t first, int64_t end) {
    expect_equal(document(packed, sequence, first, end),
                 look_up(document(ids, sequence, first, end), document(dy, sequence, first, end), end - first,
                         1, {}, alone_dplaces),
                 1e-7, "y");
  });
  expect_equal(bed_->get(dplaces), bed_->get(alone_dplaces), 1e-6, "position gradients");
}

TEST_P(Documents, OneStartForEachRowIsWanted) {
  const View few = bed_->put(DType::kI32, {kLength - 1, kBatch}, Values((kLength - 1) * kBatch));
  const View qkv = bed_->empty(DType::kF32, {kLength, kBatch, 1, 3, 4});
  const View out = bed_->empty(DType::kF32, {kLength, kBatch, 1, 4});
  EXPECT_THROW(run(*stream_, Attention{.out = out, .qkv = qkv, .scale = 1, .starts = few}), Error);
}

}  // namespace
}  // namespace megalith::test
