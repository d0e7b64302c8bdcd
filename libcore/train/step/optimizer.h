#pragma once

#include <cstdint>
#include <vector>

#include "libcore/model/param_store.h"
#include "libcore/tensor/arena.h"
#include "libcore/train/step/grad_buffer.h"
#include "libcore/train/step/shards.h"

namespace megalith {

struct AdamSettings {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  DType first_moments = DType::kF32;  // fp32 or bf16
};

/// AdamW over the part of a rank's flat values that the rank owns. Its state consists of the first and the
/// second moment and, when the values have 16 bits, fp32 masters (an fp32 model is its own master). Each is
/// one flat tensor in the order of Shards. Leaves frozen parameters unchanged. Param::decay selects weight
/// decay; Param::rate is a factor on a parameter's learning rate. Refers to table, store and shards, which
/// must outlive it.
class Optimizer {
 public:
  /// The masters are zero until take_values().
  Optimizer(const ParamTable&, const ParamStore&, const Shards&, Stream&, const AdamSettings&);

  struct Corrections {
    double first, second;
  };
  /// The values of kBiasCorrection1 and kBiasCorrection2 for an update, counted from 1.
  Corrections corrections(int64_t number) const;
  /// Updates the parameters with the values of StepScalar: learning rate, corrections, scale of the
  /// gradients. Changes nothing when the step is skipped, which the host cannot know yet, so steps() is
  /// unchanged: the caller counts the update afterwards with set_steps().
  void step(Stream&, const GradBuffer&, ConstView scalars);
  /// Number of updates so far.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  /// Copies the parameters' values, which the caller has initialized or loaded, to the masters.
  void take_values(Stream&);

  /// The ranges of parameters whose state this rank holds. m(), v() and master() return the state of one
  /// range: [part.elements] f32, m() also bf16. In an fp32 model, master() is the value itself.
  const std::vector<OwnedPart>& parts() const { return parts_; }
  View m(const OwnedPart& part) const { return m_.rows(part.at, part.at + part.elements); }
  View v(const OwnedPart& part) const { return v_.rows(part.at, part.at + part.elements); }
  View master(const OwnedPart&) const;
  bool has_masters() const { return static_cast<bool>(masters_); }

  size_t bytes() const { return arena_.peak(); }
  /// Bytes of the state for this many elements, whose values and first moments have these types.
  static size_t state_bytes(int64_t elements, DType values, DType first_moments);

 private:
  struct Range {
    OwnRange where;
    bool decay;
    double rate;
  };
  std::vector<Range> make_ranges() const;

  const ParamStore& store_;
  const Shards& shards_;
  AdamSettings settings_;
  std::vector<OwnedPart> parts_;  // parts of trainable parameters
  std::vector<Range> ranges_;
  Arena arena_;
  View m_, v_, masters_;  // [shards.elements()] f32, m_ also bf16; no masters for an fp32 model
  int64_t steps_ = 0;
};

}  // namespace megalith
