#pragma once

#include <cstdint>
#include <string>

#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/context_region.h"
#include "libcore/parallel/region.h"
#include "libcore/tensor/arena.h"

namespace megalith {

/// Where dropout masks come from (see DropoutKey); Stage sets `samples` from the microbatch.
struct RandomKey {
  uint32_t seed = 0;
  ConstView samples = {};  // [b] i64
};

/// Told which gradients a microbatch is done with, so that their reduction can begin.
class GradSink {
 public:
  virtual ~GradSink() = default;
  /// Before the first gradients of a microbatch: those of the head, because they are made in its forward
  /// pass.
  virtual void head_begins(Stream& compute) = 0;
  /// The work enqueued on `compute` so far has finished the gradients of this unit's parameters, for the
  /// present microbatch (see ParamTable::begin_unit). Units come in descending order within a stage.
  virtual void unit_done(Stream& compute, int unit) = 0;
};

/// What a layer may reach; handed down, never stored. Layers leave `scratch` as they found it.
struct Ctx {
  Stream& compute;
  const Region& tp;
  Arena& scratch;
  RandomKey key = {};
  float loss_scale = 1;  // by which the loss's gradient is multiplied, so that fp16 does not lose it
  ConstView starts = {}, position_starts = {};  // see Microbatch; Stage sets them from the microbatch
  bool training = true;                         // false: no dropout, nothing is kept for a backward pass
  GradSink* grads = nullptr;                    // may be null: nobody waits for single units
  ContextRegion cp = {};

  /// Positions of `rows` rows of this rank as they lie outside of the tensor region.
  RowPositions outside_rows(int64_t rows) const;
};

/// Gives back what was made in an arena since this object's birth.
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

/// An arena over new memory of the backend; a counting one when the backend is dry.
Arena make_arena(Backend&, std::string name, size_t bytes);

}  // namespace megalith
