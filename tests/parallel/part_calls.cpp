#include "tests/parallel/part_calls.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

/// Element by element, part `place` of `from` in `to`.
void take_part(Tensor& to, const Tensor& from, int place, int64_t part) {
  for (int64_t i = place * part; i < (place + 1) * part; ++i) to.set(i, from.get(i));
}

constexpr int64_t kGreat = 40'000;  // elements of 4 bytes that processes do not send with their headers

/// Calls visit(places, elements of a part) for all ranges of places in a group, and for great parts of a few.
/// In a group of more than four, a call takes a tenth of a second on an emulated device; there, only single
/// places are visited, and ranges that begin with the first place or end with the last one.
void each_case(int size, const std::function<void(const Places&, int64_t part)>& visit) {
  if (size > 4) {
    for (int place = 0; place < size; ++place)
      for (const Places& places : {Places{place, place + 1}, {0, place + 1}, {place, size}})
        visit(places, 37);
    return;
  }
  for (int first = 0; first < size; ++first)
    for (int last = first + 1; last <= size; ++last)
      for (const int64_t part : {0, 1, 37}) visit({first, last}, part);
  visit({size - 1, size}, kGreat);
  visit({0, size}, kGreat);
}

}  // namespace

void expect_gathered_parts(Communicator& world, const CallOnCopy& on_copy) {
  const int size = world.size();
  each_case(size, [&](const Places& places, int64_t part) {
    const std::vector<Tensor> tensors = tensors_of(DType::kI32, size, part * size);
    Tensor wanted = tensors[static_cast<size_t>(world.rank())];
    const Tensor got =
        on_copy(wanted, [&](Stream& stream, View view) { world.gather_parts(stream, view, places); });
    for (int place = places.first; place < places.last; ++place)
      take_part(wanted, tensors[static_cast<size_t>(place)], place, part);
    EXPECT_EQ(got, wanted) << "places " << places.first << " to " << places.last << ", " << part;
  });
}

void expect_reduced_parts(Communicator& world, const CallOnCopy& on_copy) {
  const int size = world.size();
  each_case(size, [&](const Places& places, int64_t part) {
    for (const auto& [dtype, reduce] :
         {std::pair(DType::kF32, Reduce::kSum), {DType::kBf16, Reduce::kSum}, {DType::kF32, Reduce::kMax}}) {
      if (part == kGreat && dtype != DType::kF32) continue;
      std::vector<Tensor> tensors = tensors_of(dtype, size, part * size);
      Tensor wanted = tensors[static_cast<size_t>(world.rank())];
      const Tensor got = on_copy(wanted, [&, kind = reduce](Stream& stream, View view) {
        world.reduce_parts(stream, view, kind, places);
      });
      if (places.contains(world.rank())) {
        Tensor sums = reduced(tensors, dtype, reduce);
        const ConstView own = sums.part(world.rank(), size);
        if (part > 0) std::memcpy(wanted.part(world.rank(), size).data, own.data, own.bytes());
      }
      EXPECT_EQ(got, wanted) << name_of(dtype) << ", places " << places.first << " to " << places.last << ", "
                             << part;
    }
  });
}

}  // namespace megalith
