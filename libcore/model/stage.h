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

/// The input of one forward pass. All views are in the backend's memory and must stay unchanged until the
/// backward pass, which reads them again.
struct Microbatch {
  ConstView tokens;          // [s, b] i32; a stage without the embedding reads only the shape
  ConstView labels = {};     // [s, b] i32; only read by the head
  ConstView loss_mask = {};  // [s, b] f32; empty: all ones
  ConstView samples = {};    // [b] i64, host or device: global sample numbers, read if there is dropout
  /// [s, b] i32. With `starts`, a row sees no row before its start: where its document begins. With
  /// `position_starts`, its position counts from its document's beginning. If either is empty, the sequence
  /// counts as one document for that purpose.
  ConstView starts = {}, position_starts = {};
  /// [s, b] f32; written by the head of an evaluation: by how much the largest logit exceeds that of the
  /// label. 0: the model would choose the label. Empty: not wanted.
  View gaps = {};
  /// d(objective)/d(sum of token losses): 1 / (microbatches * sum of loss_mask). Read by the head.
  float grad_scale = 1;
  ConstView grad_scale_at = {};  // [1] f32, a further factor of it in the backend's memory; empty: 1
};

/// Which layers are recomputed in the backward pass. `layers` is as in Megatron, for full recomputation:
/// without `block` ("uniform"), only the first of every `layers` layers keeps its input; with `block`, the
/// first `layers` layers of a stage are recomputed. If `layers` is 0, every layer keeps its input, and
/// `block` is ignored.
struct RecomputePlan {
  Recompute granularity = Recompute::kNone;
  bool block = false;
  int layers = 0;
};

/// One microbatch's saved activations. May be reused after clear().
struct Tape {
  explicit Tape(Arena memory) : arena(std::move(memory)) {}
  void clear();

  Arena arena;
  std::vector<ConstView> inputs;     // input of each block
  std::vector<Block::Saved> blocks;  // of each block; an empty one is recomputed in the backward pass
  std::optional<Head::Saved> head;
};

/// The layers that one rank holds for one pipeline chunk. The first chunk has the embedding, the last one the
/// head and the loss. Parameters are declared in the table, which must outlive the stage; the caller places
/// them (ParamStore). Nothing here reads data on the host, so every call also runs on the dry backend.
class Stage {
 public:
  Stage(const ModelConfig&, const Layers&, const TensorSplit&, ParamTable&, const RecomputePlan& = {});

  /// in: [s', b, h] from the previous stage, with s' = s (s/tp with sequence parallelism); empty on the first
  /// stage. It must stay unchanged until the backward pass. Returns [s', b, h] or, with a head, the loss of
  /// each token: [s, b] f32 in nats, 0 where masked, not scaled (sum it with ScaledSum). The result is in the
  /// tape's memory. With ctx.training the head also computes its own gradients here (each block of logits is
  /// used at once, then discarded), so backward() must follow. Without ctx.training, the tape holds only the
  /// result.
  View forward(const Ctx&, const Microbatch&, ConstView in, Tape&) const;

  /// dout: gradient of forward's result, overwritten; empty with a head. Adds to the parameters' gradients.
  /// Returns d(in), in the memory of dout or the tape; empty on the first stage.
  View backward(const Ctx&, const Microbatch&, View dout, Tape&) const;

  /// Processes tokens [t, b] i32, which follow those in the cache and are appended to it. Returns the logits
  /// [rows, b, V] f32 of the last `rows` tokens, in ctx.scratch, which the caller rewinds. Needs embedding
  /// and head. kInternal if the cache or the position table is too small.
  View logits(const Ctx&, ConstView tokens, int64_t rows, KvCache&) const;
  /// Logits [1, b, V] f32 after one more token of each of b sequences, whose caches hold one sequence each.
  /// With at most Project::kFewRows sequences, each gets the same logits as it would alone.
  View next_logits(const Ctx&, ConstView tokens, std::span<KvCache* const> caches) const;
  /// Processes tokens [t, 1] i32 of several texts: rows[i] of them follow those in caches[i] and are appended
  /// to it. Returns the logits [1, texts, V] f32 after the last token of each, in ctx.scratch, which the
  /// caller rewinds. With at most Project::kFewRows tokens, each text gets the same logits as it would alone.
  /// Needs embedding and head. kInternal if the rows are not t, or a cache or the position table is too
  /// small.
  View last_logits(const Ctx&, ConstView tokens, std::span<KvCache* const> caches,
                   std::span<const int64_t> rows) const;
  /// Processes the rows of `branches` (see Reading), of tokens [t, 1] i32. Returns the last block's output
  /// [t, 1, h], for scores(), in ctx.scratch, which the caller rewinds. Needs the embedding. kInternal if the
  /// cache or the position table is too small.
  View read_branches(const Ctx&, ConstView tokens, KvCache&, std::span<const Branch>) const;
  /// Scores the rows of an output of read_branches(); needs the head (see Head::scores()).
  void scores(const Ctx&, const Head::Scores&, ConstView x) const;

  /// The dtype of activations, known once the parameters are placed: the dtype of parameters that are
  /// vectors, since matrices may be stored in a narrower type.
  DType dtype() const { return witness_->value.dtype; }
  /// The dtype in which matrices are stored, known then as well: that of a layer's, if the stage has one.
  DType matrix_dtype() const { return matrix_->value.dtype; }
  const ModelConfig& config() const { return config_; }
  const Layers& layers() const { return layers_; }

 private:
  struct Segment {
    size_t begin, end;  // blocks of this stage
    bool again;         // whether the backward pass recomputes the segment
  };
  /// Tells ctx.params that a unit's parameters will be read.
  static void begin(const Ctx&, int unit);
  /// Tells ctx.grads that a unit's gradients are complete.
  static void done(const Ctx&, int unit);
  /// The unit of a block of this stage, or of what follows the last one: the head.
  int unit_of(size_t block) const { return first_unit_ + (embedding_ ? 1 : 0) + static_cast<int>(block); }
  void plan_segments(const RecomputePlan&);
  /// How blocks are kept for the backward pass.
  struct Keeping {
    Arena& arena;         // for their outputs and Block::Saved
    bool attention_core;  // as in Block::make_saved()
  };
  /// Runs a segment forward and returns its output. Makes the tape's entries of the segment in that arena.
  View keep(const Ctx&, const Segment&, ConstView in, Tape&, const Keeping&) const;
  /// Runs a segment forward and returns its output, in the tape's memory. Saves only the segment's input.
  View pass_through(const Ctx&, const Segment&, ConstView in, Tape&) const;

  View logits(const Ctx&, ConstView tokens, int64_t rows, const Reading&) const;
  /// The last block's output [t, b, h], in ctx.scratch.
  View read(const Ctx&, ConstView tokens, const Reading&) const;
  void check_end(int64_t position) const;

  ModelConfig config_;
  Layers layers_;
  bool keep_core_;
  const Param* witness_ = nullptr;  // whose dtype dtype() returns: a vector, if the stage has one
  const Param* matrix_ = nullptr;   // whose dtype matrix_dtype() returns
  int first_unit_ = 0;  // the stage's units: the embedding (if any), one per block, the head (if any)
  std::vector<Segment> segments_;
  std::optional<TokenEmbedding> embedding_;
  std::vector<Block> blocks_;
  std::optional<Head> head_;
};

}  // namespace megalith
