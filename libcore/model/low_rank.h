#pragma once

#include <string>

#include "libcore/model/ctx.h"
#include "libcore/model/params.h"
#include "libcore/ops/slots.h"

namespace megalith {

/// A LoRA adapter (Hu et al. 2021) of a linear layer: adds scale * dropout(x) A^T B^T to some of its outputs,
/// as peft does. A is [r, in]; B has the shape of the layer's weight, but with only the slots of
/// LowRankTarget and with r in place of `in`. In a column-parallel layer every rank holds all of A, in a
/// row-parallel layer all of B. Each rank computes only a summand of the gradient of the matrix that every
/// rank holds whole, so this gradient must be summed over the ranks; adapters need no other communication.
class LowRank {
 public:
  struct Layer {
    std::string name;
    Shape weight;  // over all ranks
    int shard_axis;
    int number;     // global number of the transformer layer
    uint32_t site;  // DropoutKey::site
  };
  LowRank(ParamTable&, const TensorSplit&, const Layer&, const LowRankTarget&);

  /// y [n, out/tp] += the adapter's output for x [n, in].
  void forward(const Ctx&, View y, ConstView x) const;
  /// Adds to the gradients of A and B. Returns the gradient of scale * dropout(x) A^T, [n, r] in ctx.scratch,
  /// for backward_input().
  View backward_weight(const Ctx&, ConstView dy, ConstView x) const;
  /// dx [n, in] += the adapter's gradient of x. `inside` is what backward_weight() returned.
  void backward_input(const Ctx&, View dx, ConstView inside) const;

 private:
  int64_t rank() const { return a_->local[0]; }
  int64_t in() const { return a_->local[1]; }
  View b_matrix(View view) const { return view.as_shape({slots_.taken(), rank()}); }
  bool whole() const { return slots_.taken() == slots_.columns(); }
  /// dropout(x) in ctx.scratch; without dropout, x itself.
  ConstView dropped(const Ctx&, ConstView x) const;
  /// scale * dropped A^T, [n, r] in ctx.scratch.
  View shrunk(const Ctx&, ConstView dropped) const;
  /// The columns of dy that correspond to this adapter's outputs, [n, slots_.taken()]: a view of dy if these
  /// are all columns, otherwise a copy in ctx.scratch.
  ConstView part_of(const Ctx&, ConstView dy) const;
  DropoutKey dropout(const Ctx&, int64_t s) const;

  Param *a_, *b_;
  Slots slots_;
  float scale_, dropout_;
  uint32_t layer_, site_;
  int64_t first_column_;  // global number of the first column of this rank's x, for the dropout mask
};

}  // namespace megalith
