// The ops that adapters need in addition to matrix products.
#include <string>
#include <vector>

#include "libcore/ops/slots.h"
#include "tests/ops/case_parts.h"

namespace megalith::test {
namespace {

/// The column of a whole row that corresponds to column `column` of the selected part, computed
/// independently.
int64_t place(const Slots& slots, int64_t column) {
  const int64_t wide = slots.count * slots.inner;
  return column / wide * slots.slots * slots.inner + slots.first * slots.inner + column % wide;
}

std::vector<Outcome> run_slots(Bed& bed, DType dtype, int64_t rows, const Slots& slots) {
  Values whole = random_values(rows * slots.columns(), 1), part = random_values(rows * slots.taken(), 2);
  const View y = bed.put(dtype, {rows, slots.columns()}, whole);
  const View x = bed.put(dtype, {rows, slots.taken()}, part);
  const View taken = bed.empty(dtype, {rows, slots.taken()});
  run(bed.stream(), TakeSlots{.y = taken, .x = y, .slots = slots});
  run(bed.stream(), AddSlots{.y = y, .x = x, .slots = slots});
  Values want_taken(part.size()), want = whole;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < slots.taken(); ++column) {
      const auto at = static_cast<size_t>(row * slots.columns() + place(slots, column));
      const auto from = static_cast<size_t>(row * slots.taken() + column);
      want_taken[from] = whole[at];
      want[at] += part[from];
    }
  return {{"taken", bed.get(taken), want_taken, 0, 1}, {"sum", bed.get(y), want, tolerance_of(dtype)}};
}

std::vector<Outcome> run_scale(Bed& bed, DType dtype, int64_t n) {
  constexpr float kFactor = 0.7f;
  Values values = random_values(n, 3);
  const View x = bed.put(dtype, {1, n}, values);
  run(bed.stream(), ScaleBy{.x = x, .factor = kFactor});
  for (double& value : values) value *= static_cast<double>(kFactor);
  return {{"x", bed.get(x), values, tolerance_of(dtype)}};
}

const Slots kSlots[] = {{.outer = 3, .slots = 5, .first = 3, .count = 1, .inner = 7},
                        {.outer = 2, .slots = 4, .first = 0, .count = 2, .inner = 16},
                        {.outer = 3, .slots = 3, .first = 1, .count = 1, .inner = 264},
                        {.outer = 1, .slots = 2, .first = 1, .count = 1, .inner = 33}};

}  // namespace

void add_slot_cases(std::vector<OpCase>& cases, const Types& types) {
  for (const DType dtype : types) {
    for (const Slots& slots : kSlots)
      for (const int64_t rows : {0, 1, 17})
        cases.push_back({concat("slots ", name_of(dtype), ' ', slots.inner, ' ', rows),
                         [=](Bed& bed) { return run_slots(bed, dtype, rows, slots); }});
    for (const int64_t n : {0, 1, 3001})
      cases.push_back(
          {concat("scale ", name_of(dtype), ' ', n), [=](Bed& bed) { return run_scale(bed, dtype, n); }});
  }
}

}  // namespace megalith::test
