#pragma once

#include <cstdint>
#include <vector>

#include "libcore/model/param_store.h"
#include "libcore/tensor/arena.h"

namespace megalith {

struct AdamSettings {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
};

/// AdamW over the flat range of a ParamStore: first and second moment, and fp32 masters when the values are
/// 16 bits wide (an fp32 model is its own master). Frozen parameters are left alone; Param::decay chooses
/// where weight decay applies. Refers to table and store, which must outlive it.
class Optimizer {
 public:
  Optimizer(const ParamTable&, const ParamStore&, Stream&, const AdamSettings&);

  /// The bias corrections of the next update, at their places among the [StepScalar::kCount] scalars.
  void give_corrections(double* scalars) const;
  /// One update by the device's scalars, [StepScalar::kCount] f64; not counted in steps(), since only they
  /// know whether it is skipped.
  void step(Stream&, ConstView scalars);
  /// Updates made so far, for Adam's bias correction; set after one, and when a run is resumed.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  /// Masters from the values, after these were set by somebody else.
  void take_values(Stream&);
  /// Values from the masters, after these were loaded.
  void give_values(Stream&);

  /// The state of one parameter, [its local shape] f32. master() is the value itself in an fp32 model.
  View m(const Param& param) const { return part(m_, param); }
  View v(const Param& param) const { return part(v_, param); }
  View master(const Param& param) const { return part(masters_, param); }

  /// Bytes of the state for that many elements (a store's elements()).
  static size_t state_bytes(int64_t elements, DType values);

 private:
  struct Range {  // of the flat tensors, in elements
    int64_t begin, end;
    bool decay;
  };
  static std::vector<Range> make_ranges(const ParamTable&, const ParamStore&);
  View part(View flat, const Param&) const;

  const ParamStore& store_;
  AdamSettings settings_;
  std::vector<Range> ranges_;
  Arena arena_;
  View m_, v_, masters_;  // [elements] f32
  int64_t steps_ = 0;
};

}  // namespace megalith
