#include "libcore/ops/slots.h"

#include "libcore/ops/checks.h"

namespace megalith {
namespace {

/// Checks that `whole` is [n, slots.columns()] and `part` is [n, slots.taken()].
void check_slots(const char* op, const ConstView& whole, const ConstView& part, const Slots& slots) {
  want_float(op, "rows", whole);
  want_dtype(op, "slots, of the rows' dtype,", part, whole.dtype);
  require(slots.first >= 0 && slots.count >= 1 && slots.first + slots.count <= slots.slots, op,
          "slots within the rows", slots.first + slots.count, slots.slots);
  require(whole.shape.back() == slots.columns() && part.shape.back() == slots.taken(), op,
          "rows of all slots and of those taken", whole.shape, part.shape);
  require(whole.shape.rows() == part.shape.rows(), op, "equally many rows", whole.shape, part.shape);
}

}  // namespace

void AddSlots::check() const {
  check_slots(kName, y, x, slots);
}
Cost AddSlots::cost() const {
  return {static_cast<double>(x.elements()), 3 * bytes_of(x)};
}

void TakeSlots::check() const {
  check_slots(kName, x, y, slots);
}
Cost TakeSlots::cost() const {
  return {0, 2 * bytes_of(y)};
}

void ScaleBy::check() const {
  want_float(kName, "x", x);
}
Cost ScaleBy::cost() const {
  return {static_cast<double>(x.elements()), 2 * bytes_of(x)};
}

}  // namespace megalith
