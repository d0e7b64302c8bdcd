#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "libcore/config/model_config.h"
#include "libcore/config/train_config.h"
#include "libcore/model/block.h"
#include "libcore/model/ctx.h"
#include "libcore/model/embedding.h"
#include "libcore/model/head.h"
#include "libcore/model/kv_cache.h"
#include "libcore/model/layers.h"
#include "libcore/model/params.h"

namespace megalith {

/// What one forward pass takes. All views are in the backend's memory and must stay until the backward pass,
/// because it reads them again.
struct Microbatch {
  ConstView tokens;          // [s, b] i32; also tells s and b where it is not read
  ConstView labels = {};     // [s, b] i32; read by the head alone
  ConstView loss_mask = {};  // [s, b] f32; empty: all ones
  ConstView samples = {};    // [b] i64, host or device: global sample numbers, read when there is dropout
  /// Where several documents share a sequence: for each row the row at which its document begins, [s, b] i32.
  /// With `starts` a row sees its own document only, with `position_starts` its position counts from there.
  /// Empty: as if the sequence were one document.
  ConstView starts = {}, position_starts = {};
  /// d(what is minimised)/d(sum of token losses): 1 / (microbatches * sum of loss_mask). Read by the head.
  float grad_scale = 1;
};

/// Which layers are run again in the backward pass. `layers` as Megatron: uniform: layers that share one kept
/// input; block: how many of a stage's first layers are run again. 0: uniform of 1.
struct RecomputePlan {
  Recompute granularity = Recompute::kNone;
  bool block = false;
  int layers = 0;
};

/// One microbatch's saved activations. May be used again after clear().
struct Tape {
  explicit Tape(Arena memory) : arena(std::move(memory)) {}
  void clear();

  Arena arena;
  std::vector<ConstView> inputs;     // of each block
  std::vector<Block::Saved> blocks;  // empty ones are run again
  std::optional<Head::Saved> head;
};

/// The layers one rank holds for one pipeline chunk. The embedding stands on the first, the head and the loss
/// on the last. Parameters are declared in the table, which must outlive the stage; the caller places them
/// (ParamStore). Nothing here reads data on the host, so every call also runs on the dry backend.
class Stage {
 public:
  Stage(const ModelConfig&, const Layers&, const TensorSplit&, ParamTable&, const RecomputePlan& = {});

  /// in: [s', b, h] from the stage before, s' = s (s/tp with sequence parallelism); empty on the first. It
  /// must stay until the backward pass. Returns [s', b, h]; with a head the loss of each token, [s, b] f32 in
  /// nats, 0 where masked, not scaled (sum it with ScaledSum). The result lies in the tape.
  /// With ctx.training the head also computes its own gradients here (logits never stand whole: they are made
  /// in blocks of rows, and a block's gradient is used at once), so a forward in training must be followed by
  /// its backward. Without, the tape holds only the result.
  View forward(const Ctx&, const Microbatch&, ConstView in, Tape&) const;

  /// dout: gradient of forward's result, overwritten; empty with a head. Adds to the parameters' gradients.
  /// Returns d(in), in the memory of dout or the tape; empty on the first stage.
  View backward(const Ctx&, const Microbatch&, View dout, Tape&) const;

  /// Logits [rows, b, V] f32 of the last `rows` of tokens [t, b] i32 that follow those in the cache, which
  /// then holds them too. Needs embedding and head. The result is made in ctx.scratch and is the caller's to
  /// rewind. kInternal when the cache or the position table is too small.
  View logits(const Ctx&, ConstView tokens, int64_t rows, KvCache&) const;
  /// Logits [1, b, V] f32 after one more token of each of b sequences, whose caches hold one sequence each.
  /// With at most Project::kFewRows of them a sequence's logits are what it would get alone.
  View next_logits(const Ctx&, ConstView tokens, std::span<KvCache* const> caches) const;

  /// Activation dtype, known once the parameters are placed: that of the vectors, because matrices may be
  /// stored narrower.
  DType dtype() const { return witness_->value.dtype; }
  const ModelConfig& config() const { return config_; }
  const Layers& layers() const { return layers_; }

 private:
  struct Segment {
    size_t begin, end;  // blocks of this stage
    bool again;         // run again in the backward pass
  };
  /// Tells ctx.grads that a unit's gradients are complete.
  static void done(const Ctx&, int unit);
  void plan_segments(const RecomputePlan&);
  /// Both run a segment forward; its output lies in the tape. keep() also keeps what the backward pass needs.
  View keep(const Ctx&, const Segment&, ConstView in, Tape&) const;
  View pass_through(const Ctx&, const Segment&, ConstView in, Tape&) const;
  /// Fills the tape's entries of a segment from its input, in ctx.scratch.
  void run_again(const Ctx&, const Segment&, Tape&) const;

  View logits(const Ctx&, ConstView tokens, int64_t rows, const Reading&) const;

  ModelConfig config_;
  Layers layers_;
  bool keep_core_;
  const Param* witness_ = nullptr;  // any of the stage's own parameters
  int first_unit_ = 0;              // embedding (if any), then one unit a block, then the head (if any)
  std::vector<Segment> segments_;
  std::optional<TokenEmbedding> embedding_;
  std::vector<Block> blocks_;
  std::optional<Head> head_;
};

}  // namespace megalith
