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

/// Trainers of a sequence of 12, whose exchanges are cut in up to `pieces` pieces.
struct Trainers : EmulatedTrainers {
  Trainers(int tensor, bool sequence, int pieces) : EmulatedTrainers(layout_of(tensor, sequence)) {
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
int64_t hidden(const Spans& exchanges, const Spans& products) {
  return std::count_if(exchanges.begin(), exchanges.end(), [&](const SpanLog::Span& exchange) {
    return std::any_of(products.begin(), products.end(),
                       [&](const SpanLog::Span& product) { return at_once(exchange, product); });
  });
}

/// Two steps of two microbatches and an evaluation of two, each through four layers: passes of a layer with
/// gradients, and those forward.
constexpr int64_t kBackward = 2 * 2 * 4, kForward = 3 * 2 * 4;

class TensorExchange : public test::EmulatedDevices {
 protected:
  static void expect_equal(const EmulatedTrainers::Outcome& got, const EmulatedTrainers::Outcome& wanted) {
    EXPECT_EQ(got.losses, wanted.losses);
    EXPECT_EQ(got.values, wanted.values);
  }
};

// The sums of three of four pieces run beside the product of the next one.
TEST_F(TensorExchange, SumsOnePieceBesideTheProductOfTheNext) {
  const EmulatedTrainers::Outcome whole = Trainers(2, false, 1).train_two_steps(1);
  EXPECT_TRUE(spans_of(whole.trace, "tensor exchange", "").empty());
  for (const unsigned order : {1U, 2U, 3U}) {
    const EmulatedTrainers::Outcome got = Trainers(2, false, 4).train_two_steps(order);
    expect_equal(got, whole);
    const Spans sums = spans_of(got.trace, "tensor exchange", "sum rows "),
                products = spans_of(got.trace, "compute", "product of rows ");
    EXPECT_EQ(sums.size(), 4 * 2 * (kForward + kBackward)) << order;
    EXPECT_EQ(products.size(), sums.size()) << order;
    EXPECT_GE(hidden(sums, products), 3 * 2 * (kForward + kBackward)) << order;
  }
}

// With two ranks there are two pieces. The first product waits for the first piece, while the second one is
// on its way; the inputs that a backward pass gathers again run beside the gradients that do not need them.
TEST_F(TensorExchange, GathersAndSumsASequenceBesideProducts) {
  const EmulatedTrainers::Outcome whole = Trainers(2, true, 1).train_two_steps(1);
  for (const unsigned order : {1U, 2U, 3U}) {
    const EmulatedTrainers::Outcome got = Trainers(2, true, 4).train_two_steps(order);
    expect_equal(got, whole);
    const Spans sums = spans_of(got.trace, "tensor exchange", "sum rows "),
                gathers = spans_of(got.trace, "tensor exchange", "gather rows "),
                again = spans_of(got.trace, "tensor exchange", "tensor all_gather"),
                products = spans_of(got.trace, "compute", "product of rows "),
                passes = spans_of(got.trace, "compute", "B0.");
    EXPECT_EQ(sums.size(), 2 * 2 * (kForward + kBackward)) << order;
    EXPECT_EQ(gathers.size(), 2 * 2 * kForward) << order;
    EXPECT_EQ(again.size(), 2 * kBackward) << order;
    EXPECT_GE(hidden(sums, products), 2 * (kForward + kBackward)) << order;
    EXPECT_GE(hidden(gathers, products), 2 * kForward) << order;
    EXPECT_EQ(hidden(again, passes), 2 * kBackward) << order;
  }
}

// With four ranks, two pieces have the rows of two ranks each.
TEST_F(TensorExchange, ChangesNoBitWhereAPieceHasSeveralRanks) {
  expect_equal(Trainers(4, true, 2).train_two_steps(2), Trainers(4, true, 1).train_two_steps(1));
}

// The sums of NCCL's own order differ by the roundings of a ring.
TEST_F(TensorExchange, StaysCloseWhereSumsAreInNcclsOrder) {
  for (const bool sequence : {false, true}) {
    Trainers own(4, sequence, 4);
    own.config.parallel.rank_order = false;
    const auto got = own.train_two_steps(3), whole = Trainers(4, sequence, 1).train_two_steps(1);
    for (size_t i = 0; i < whole.losses.size(); ++i)
      EXPECT_NEAR(got.losses[i] / whole.losses[i], 1, 1e-5) << sequence;
  }
}

}  // namespace
}  // namespace megalith
