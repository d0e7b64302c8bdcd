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

/// Is told which gradients of a microbatch are complete, so that their reduction can begin.
class GradSink {
 public:
  virtual ~GradSink() = default;
  /// Called before the first gradients of a microbatch, those of the head, which are computed in its forward
  /// pass.
  virtual void head_begins(Stream& compute) = 0;
  /// The work enqueued on `compute` so far has completed the gradients of this unit's parameters for the
  /// current microbatch (see ParamTable::begin_unit). Within a stage, units come in descending order.
  virtual void unit_done(Stream& compute, int unit) = 0;
};

/// What a layer may use; passed down, never stored. Layers leave `scratch` as they found it.
struct Ctx {
  Stream& compute;
  const Region& tp;
  Arena& scratch;
  RandomKey key = {};
  float loss_scale = 1;  // factor of the loss's gradient, which keeps fp16 from losing it
  ConstView starts = {}, position_starts = {};  // see Microbatch; Stage sets them from the microbatch
  bool training = true;                         // false: no dropout, nothing is kept for a backward pass
  GradSink* grads = nullptr;                    // may be null: nobody needs to know of single units
  ContextRegion cp = {};

  /// Positions of `rows` rows of this rank, as they are outside of the tensor region.
  RowPositions outside_rows(int64_t rows) const;
};

/// Frees what was made in an arena since this object was made.
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

/// An arena over new memory of the backend; a counting one if the backend is dry.
Arena make_arena(Backend&, std::string name, size_t bytes);

}  // namespace megalith
