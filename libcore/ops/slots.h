#pragma once

#include "libcore/ops/op.h"

namespace megalith {

/// Some columns of rows [outer, slots, inner]: `count` slots from `first` on in each outer one. The outputs
/// of QKV are [groups, q + 2, head]; their keys are slot q.
struct Slots {
  int64_t outer = 1, slots = 1, first = 0, count = 1, inner = 0;

  int64_t columns() const { return outer * slots * inner; }  // of a whole row
  int64_t taken() const { return outer * count * inner; }    // in the slots
};

/// y[n, slots] += x.
struct AddSlots {
  View y;       // [n, slots.columns()]
  ConstView x;  // [n, slots.taken()], of y's dtype
  Slots slots;
  static constexpr const char* kName = "add_slots";
  void check() const;
  Cost cost() const;
};

/// y = x[n, slots].
struct TakeSlots {
  View y;       // [n, slots.taken()]
  ConstView x;  // [n, slots.columns()], of y's dtype
  Slots slots;
  static constexpr const char* kName = "take_slots";
  void check() const;
  Cost cost() const;
};

/// x *= factor, rounded once. Runs on one thread: its tensors are small.
struct ScaleBy {
  View x;
  float factor;
  static constexpr const char* kName = "scale";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
