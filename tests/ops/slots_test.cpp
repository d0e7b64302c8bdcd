// The ops that adapters need in addition to matrix products. Only the CPU supports them, so they are not
// among the cases for every backend.
#include "libcore/ops/slots.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/ops/cases.h"

namespace megalith::test {
namespace {

class SlotOps : public testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<Backend> backend_ = make_cpu_backend();
  Stream stream_ = backend_->make_stream();
  Bed bed_{stream_};
};
INSTANTIATE_TEST_SUITE_P(Types, SlotOps, testing::Values(DType::kF32, DType::kBf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

/// The column of a whole row that corresponds to column `column` of the selected part, computed
/// independently.
int64_t place(const Slots& slots, int64_t column) {
  const int64_t wide = slots.count * slots.inner;
  return column / wide * slots.slots * slots.inner + slots.first * slots.inner + column % wide;
}

const std::vector<Slots> kSlots = {{.outer = 3, .slots = 5, .first = 3, .count = 1, .inner = 7},
                                   {.outer = 2, .slots = 4, .first = 0, .count = 2, .inner = 16},
                                   {.outer = 1, .slots = 2, .first = 1, .count = 1, .inner = 33}};

TEST_P(SlotOps, TakeAndAddTheirColumnsAlone) {
  for (const Slots& slots : kSlots)
    for (const int64_t rows : {1, 17}) {
      Values whole = random_values(rows * slots.columns(), 1), part = random_values(rows * slots.taken(), 2);
      const View y = bed_.put(GetParam(), {rows, slots.columns()}, whole);
      const View x = bed_.put(GetParam(), {rows, slots.taken()}, part);
      const View taken = bed_.empty(GetParam(), {rows, slots.taken()});
      run(stream_, TakeSlots{.y = taken, .x = y, .slots = slots});
      run(stream_, AddSlots{.y = y, .x = x, .slots = slots});
      Values want_taken(part.size()), want = whole;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < slots.taken(); ++column) {
          const auto at = static_cast<size_t>(row * slots.columns() + place(slots, column));
          const auto from = static_cast<size_t>(row * slots.taken() + column);
          want_taken[from] = whole[at];
          want[at] += part[from];
        }
      EXPECT_EQ(bed_.get(taken), want_taken);
      EXPECT_EQ(disagreement({"sum", bed_.get(y), want, GetParam() == DType::kF32 ? 1e-7 : 0x1p-8}), "");
    }
}

TEST_P(SlotOps, ScaleMultipliesEveryElement) {
  Values values = random_values(3000, 3);
  const View x = bed_.put(GetParam(), {3, 1000}, values);
  run(stream_, ScaleBy{.x = x, .factor = 0.75f});
  for (double& value : values) value *= 0.75;
  EXPECT_EQ(disagreement({"x", bed_.get(x), values, GetParam() == DType::kF32 ? 1e-7 : 0x1p-8}), "");
}

TEST_P(SlotOps, SlotsBeyondTheRowAreRefused) {
  const View y = bed_.empty(GetParam(), {2, 12}), x = bed_.empty(GetParam(), {2, 8});
  EXPECT_THROW(
      run(stream_, AddSlots{.y = y, .x = x, .slots = {.slots = 3, .first = 2, .count = 2, .inner = 4}}),
      Error);
  EXPECT_THROW(run(stream_, TakeSlots{.y = x, .x = y, .slots = {.slots = 3, .count = 1, .inner = 4}}), Error);
}

}  // namespace
}  // namespace megalith::test
