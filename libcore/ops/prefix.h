#pragma once

#include "libcore/ops/op.h"

namespace megalith {

/// Fills the first rows of attention's keys and values with those that all sequences of the batch see.
struct PutPrefix {
  View kv;           // [p, b, groups, 2, head], overwritten
  ConstView prefix;  // [2 (k, v), groups, p, head], of kv's dtype
  static constexpr const char* kName = "put_prefix";
  void check() const;
  Cost cost() const;
};

/// dprefix += the sum over the batch of dkv, the gradient of PutPrefix's kv. The order of summation is fixed,
/// so that results are reproducible bit for bit.
struct PrefixGrad {
  View dprefix;   // [2, groups, p, head] f32
  ConstView dkv;  // [p, b, groups, 2, head]
  static constexpr const char* kName = "prefix_grad";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
