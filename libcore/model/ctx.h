#pragma once

#include <cstdint>
#include <string>

#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/context_region.h"
#include "libcore/parallel/region.h"
#include "libcore/tensor/arena.h"

namespace megalith {

/// Identifies dropout masks (see DropoutKey); Stage sets `samples` from the microbatch.
struct RandomKey {
  uint32_t seed = 0;
  ConstView samples = {};  // [b] i64
};

/// Receives notice when gradients of a microbatch are complete, so that it can begin to reduce them.
class GradSink {
 public:
  virtual ~GradSink() = default;
  /// Called before the first gradients of a microbatch are computed. These are the head's, which the forward
  /// pass already computes.
  virtual void head_begins(Stream& compute) = 0;
  /// Called when the work enqueued on `compute` so far completes the current microbatch's gradients of this
  /// unit (see ParamTable::begin_unit). Within a stage, units come in descending order.
  virtual void unit_done(Stream& compute, int unit) = 0;
};

/// Receives notice before a forward pass reads parameters, so that it can wait until they are there.
class ParamGate {
 public:
  virtual ~ParamGate() = default;
  /// Called before work that reads parameters of this unit (see ParamTable::begin_unit) is enqueued on
  /// `compute`. Within a stage, units come in ascending order.
  virtual void unit_begins(Stream& compute, int unit) = 0;
};

/// The context of a layer's calls. It is passed down and never stored. A layer frees all that it allocates in
/// `scratch`.
struct Ctx {
  Stream& compute;
  const Region& tp;
  Arena& scratch;
  RandomKey key = {};
  float loss_scale = 1;  // factor of the loss's gradient, so that it does not underflow in fp16
  ConstView starts = {}, position_starts = {};  // see Microbatch; Stage sets them from the microbatch
  bool training = true;                         // false: no dropout, nothing is kept for a backward pass
  GradSink* grads = nullptr;                    // null: nobody is notified
  ParamGate* params = nullptr;                  // null: all parameters are there
  ContextRegion cp = {};

  /// The positions of the `rows` rows that this rank has outside the tensor region. With sequence
  /// parallelism, these are only a share of the sequence.
  RowPositions outside_rows(int64_t rows) const;
};

/// On destruction, frees the tensors made in the arena since construction.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.rewind(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  size_t mark_;
};

/// An arena over memory newly allocated from the backend; with the dry backend, a counting arena.
Arena make_arena(Backend&, std::string name, size_t bytes);

}  // namespace megalith
