#pragma once

#include <string>

#include "libcore/model/ctx.h"
#include "libcore/model/params.h"
#include "libcore/ops/slots.h"

namespace megalith {

/// An adapter of LoRA (Hu et al. 2021) beside a linear layer: to some of its outputs scale * dropout(x) A^T
/// B^T is added, as peft computes it. A [r, in], B as the layer's weight, with the part's slots alone and r
/// for `in`. In a column-parallel layer every rank holds all of A, in a row-parallel one all of B; their
/// gradients are the ranks' summands then, and nothing but them needs a message.
class LowRank {
 public:
  struct Layer {
    std::string name;
    Shape weight;  // of all ranks
    int cut_axis;
    int number;     // global number of the transformer layer
    uint32_t site;  // DropoutKey::site
  };
  LowRank(ParamTable&, const TensorSplit&, const Layer&, const LowRankTarget&);

  /// y [n, out/tp] += the adapter's part of x [n, in].
  void forward(const Ctx&, View y, ConstView x) const;
  /// Adds to the gradients of A and B. Returns that of scale * dropout(x) A^T, [n, r] in ctx.scratch, which
  /// backward_input() wants.
  View backward_weight(const Ctx&, ConstView dy, ConstView x) const;
  /// dx [n, in] += its gradient.
  void backward_input(const Ctx&, View dx, ConstView inside) const;

 private:
  int64_t rank() const { return a_->local[0]; }
  int64_t in() const { return a_->local[1]; }
  View b_matrix(View view) const { return view.as_shape({slots_.taken(), rank()}); }
  bool whole() const { return slots_.taken() == slots_.columns(); }
  /// x through the mask, in ctx.scratch; x itself without dropout.
  ConstView dropped(const Ctx&, ConstView x) const;
  /// scale * dropout(x) A^T, [n, r] in ctx.scratch.
  View shrunk(const Ctx&, ConstView dropped) const;
  /// The part's columns of dy.
  ConstView part_of(const Ctx&, ConstView dy) const;
  DropoutKey dropout(const Ctx&, int64_t s) const;

  Param *a_, *b_;
  Slots slots_;
  float scale_, dropout_;
  uint32_t layer_, site_;
  int64_t first_column_;  // of x on this rank, for the mask
};

}  // namespace megalith
