#pragma once

#include "libcore/ops/op.h"

namespace megalith {

/// A selection of the columns of a row [outer, slots, inner]: slots [first, first + count) of each outer
/// index. For example, the outputs of QKV are [groups, q + 2, head], and the keys are slot q.
struct Slots {
  int64_t outer = 1, slots = 1, first = 0, count = 1, inner = 0;

  int64_t columns() const { return outer * slots * inner; }  // columns of a whole row
  int64_t taken() const { return outer * count * inner; }    // columns in the selected slots
};

/// Adds x to the selected columns of y.
struct AddSlots {
  View y;       // [n, slots.columns()]
  ConstView x;  // [n, slots.taken()], of y's dtype
  Slots slots;
  static constexpr const char* kName = "add_slots";
  void check() const;
  Cost cost() const;
};

/// Copies the selected columns of x to y.
struct TakeSlots {
  View y;       // [n, slots.taken()]
  ConstView x;  // [n, slots.columns()], of y's dtype
  Slots slots;
  static constexpr const char* kName = "take_slots";
  void check() const;
  Cost cost() const;
};

/// x *= factor, rounded once.
struct ScaleBy {
  View x;
  float factor;
  static constexpr const char* kName = "scale";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
