// Exchanges of tensor-parallel ranks in pieces beside products, on emulated devices: that they run at the
// same time, and that they change no bit.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "tests/train/step/emulated_trainers.h"

namespace megalith {
namespace {

using Spans = std::vector<SpanLog::Span>;
using test::EmulatedTrainers;
using test::spans_of;

ParallelConfig layout_of(int tensor, bool sequence) {
  ParallelConfig parallel;
  parallel.tensor = tensor;
  parallel.sequence = sequence;
  parallel.rank_order = true;
  return parallel;
}

constexpr int kLayers = 2;

/// Trainers of a sequence of 12, whose exchanges are cut in up to `pieces` pieces.
struct Trainers : EmulatedTrainers {
  Trainers(int tensor, bool sequence, int pieces, int layers = kLayers)
      : EmulatedTrainers(layout_of(tensor, sequence)) {
    config.model.layers = layers;
    config.model.heads = 4;
    config.model.seq_length = config.model.max_positions = 12;
    config.finish();
    cut = {.most = pieces, .least_bytes = 1};
  }
};

bool at_once(const SpanLog::Span& a, const SpanLog::Span& b) {
  return a.begin < b.end && b.begin < a.end;
}

/// For how many of `exchanges` one of `products` runs at the same time.
size_t hidden(const Spans& exchanges, const Spans& products) {
  const auto count = std::count_if(exchanges.begin(), exchanges.end(), [&](const SpanLog::Span& exchange) {
    return std::any_of(products.begin(), products.end(),
                       [&](const SpanLog::Span& product) { return at_once(exchange, product); });
  });
  return static_cast<size_t>(count);
}

/// Two steps of two microbatches and an evaluation of two: passes with gradients, and all that go forward.
constexpr size_t kTrained = 2 * 2, kPasses = 3 * 2;
/// The same of all layers.
constexpr size_t kBackward = kLayers * kTrained, kForward = kLayers * kPasses;
/// Sums after products: of layers, and of the embedding. The head's gradient is summed in kTrained passes.
constexpr size_t kSums = 2 * (kForward + kBackward) + kPasses;

class TensorExchange : public testing::Test {
 protected:
  static void expect_equal(const EmulatedTrainers::Outcome& got, const EmulatedTrainers::Outcome& wanted) {
    EXPECT_EQ(got.losses, wanted.losses);
    EXPECT_EQ(got.values, wanted.values);
  }
};

// A sum in rank order is a copy, two exchanges of messages and a kernel, which take the emulated device as
// long as four products. So that of the first piece runs beside the product of the second one, and the others
// begin after all four products.
TEST_F(TensorExchange, SumsOnePieceBesideTheProductOfTheNext) {
  const EmulatedTrainers::Outcome whole = Trainers(2, false, 1).train_two_steps(1);
  EXPECT_TRUE(spans_of(whole.trace, "tensor exchange", "").empty());
  for (const unsigned order : {1U, 2U, 3U}) {
    const EmulatedTrainers::Outcome got = Trainers(2, false, 4).train_two_steps(order);
    expect_equal(got, whole);
    EXPECT_EQ(spans_of(got.trace, "tensor exchange", "sum rows ").size(), 4 * (kSums + kTrained)) << order;
    EXPECT_EQ(spans_of(got.trace, "compute", "product of rows ").size(), 4 * kSums) << order;
    EXPECT_EQ(hidden(spans_of(got.trace, "tensor exchange", "sum rows 0 to 3"),
                     spans_of(got.trace, "compute", "product of rows 3 to 6")),
              kSums)
        << order;
  }
}

// In NCCL's order a sum takes the emulated device no longer than a product, so each runs beside the product
// of the next piece, but the last.
TEST_F(TensorExchange, SumsEachPieceButTheLastBesideAProduct) {
  Trainers own(2, false, 4);
  own.config.parallel.rank_order = false;
  const EmulatedTrainers::Outcome got = own.train_two_steps(2);
  for (const int row : {0, 3, 6})
    EXPECT_EQ(hidden(spans_of(got.trace, "tensor exchange", concat("sum rows ", row, " to ", row + 3)),
                     spans_of(got.trace, "compute", concat("product of rows ", row + 3, " to ", row + 6))),
              kSums)
        << row;
}

// With two ranks there are two pieces. The first product waits for the first piece, while the second one is
// on its way: in a layer the inputs of a forward pass, and the gradients of its outputs. What a backward pass
// gathers again is in one piece, and the embedding's gradient is not gathered beside anything.
TEST_F(TensorExchange, GathersAndSumsASequenceBesideProducts) {
  const EmulatedTrainers::Outcome whole = Trainers(2, true, 1).train_two_steps(1);
  for (const unsigned order : {1U, 2U, 3U}) {
    const EmulatedTrainers::Outcome got = Trainers(2, true, 4).train_two_steps(order);
    expect_equal(got, whole);
    constexpr size_t kGathers = 2 * (kForward + kBackward);
    const auto exchanges = [&](const char* start) { return spans_of(got.trace, "tensor exchange", start); };
    const auto products = [&](const char* start) { return spans_of(got.trace, "compute", start); };
    EXPECT_EQ(exchanges("sum rows ").size(), 2 * (kSums + kTrained)) << order;
    EXPECT_EQ(exchanges("gather rows ").size(), 2 * (kGathers + kPasses)) << order;
    EXPECT_EQ(exchanges("tensor all_gather").size(), 2 * kBackward) << order;
    EXPECT_EQ(products("tensor all_gather").size(), kTrained) << order;
    EXPECT_EQ(hidden(exchanges("sum rows 0 to 6"), products("product of rows 6 to 12")), kSums) << order;
    EXPECT_EQ(hidden(exchanges("gather rows 6 to 12"), products("product of rows 0 to 6")), kGathers)
        << order;
  }
}

// A row of the sequence is one of each sample: two of the logits.
TEST_F(TensorExchange, OfTheHeadRunsBesideTheProductsOfLogits) {
  for (const bool sequence : {false, true}) {
    const EmulatedTrainers::Outcome got = Trainers(2, sequence, 2).train_two_steps(3);
    EXPECT_EQ(hidden(spans_of(got.trace, "tensor exchange", "sum rows 0 to 6"),
                     spans_of(got.trace, "compute", "gradient of rows 12 to 24")),
              kTrained)
        << sequence;
    EXPECT_EQ(hidden(spans_of(got.trace, "tensor exchange", "gather rows 6 to 12"),
                     spans_of(got.trace, "compute", "logits of rows 0 to 12")),
              sequence ? kPasses : 0)
        << sequence;
  }
}

// The logits of 24 rows are in blocks of 5, so a block ends within a piece, and within a row of the sequence.
// Its sums over the ranks come between pieces. Layers do not take part: there is one.
TEST_F(TensorExchange, OfTheHeadChangesNoBitWhereLogitsAreInBlocks) {
  constexpr int64_t kRowOfLogits = 128 * 4;  // the least rows of a rank's table, in fp32
  for (const bool sequence : {false, true}) {
    Trainers whole(2, sequence, 1, 1), cut(2, sequence, 4, 1);
    whole.logits_bytes = cut.logits_bytes = 5 * kRowOfLogits;
    const EmulatedTrainers::Outcome wanted = whole.train_two_steps(1);
    for (const unsigned order : {1U, 2U, 3U}) {
      const EmulatedTrainers::Outcome got = cut.train_two_steps(order);
      expect_equal(got, wanted);
      EXPECT_FALSE(spans_of(got.trace, "compute", "logits of rows 5 to ").empty());
    }
  }
}

// With four ranks, two pieces have the rows of two ranks each.
TEST_F(TensorExchange, ChangesNoBitWhereAPieceHasSeveralRanks) {
  expect_equal(Trainers(4, true, 2).train_two_steps(2), Trainers(4, true, 1).train_two_steps(1));
}

// The sums of NCCL's own order differ by the roundings of a ring.
TEST_F(TensorExchange, StaysCloseWhereSumsAreInNcclsOrder) {
  for (const bool sequence : {false, true}) {
    Trainers own(4, sequence, 4, 2);
    own.config.parallel.rank_order = false;
    const auto got = own.train_two_steps(3), whole = Trainers(4, sequence, 1, 2).train_two_steps(1);
    for (size_t i = 0; i < whole.losses.size(); ++i)
      EXPECT_NEAR(got.losses[i] / whole.losses[i], 1, 1e-5) << sequence;
  }
}

}  // namespace
}  // namespace megalith
