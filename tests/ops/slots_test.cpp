#include "libcore/ops/slots.h"

#include <gtest/gtest.h>

#include "tests/ops/cases.h"

namespace megalith::test {
namespace {

TEST(SlotOps, SlotsBeyondTheRowAreRefused) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    Bed bed(stream);
    const View y = bed.empty(dtype, {2, 12}), x = bed.empty(dtype, {2, 8});
    EXPECT_THROW(
        run(stream, AddSlots{.y = y, .x = x, .slots = {.slots = 3, .first = 2, .count = 2, .inner = 4}}),
        Error);
    EXPECT_THROW(run(stream, TakeSlots{.y = x, .x = y, .slots = {.slots = 3, .count = 1, .inner = 4}}),
                 Error);
  }
}

}  // namespace
}  // namespace megalith::test
