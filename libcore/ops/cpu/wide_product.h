#pragma once

#include "libcore/ops/cpu/kernels/kernels.h"
#include "libcore/ops/cpu/products.h"
#include "libcore/ops/linear.h"

namespace megalith::cpu {

/// A product of 16-bit operands in fp32: for fp16, which oneDNN does not multiply, and for bf16 on processors
/// without products of it. Rows are widened in panels, which are multiplied while they are in the cache; of
/// the weights' gradient, whose sums are over the rows, panels add up in their order.
class WideProduct {
 public:
  WideProduct(Products& products, const Kernels& kernels) : products_(products), kernels_(kernels) {}
  /// Throws as Products::run(), and kSystem if there is no memory for the copies.
  void run(const Gemm&);

 private:
  void run_by_rows(const Gemm&);
  void run_by_terms(const Gemm&);
  /// `view` itself if it is fp32, or a copy.
  ConstView widened(const ConstView& view);
  /// `view` itself if it is fp32; otherwise memory for the result in fp32, with the values that it has if the
  /// product is to add to them.
  View result(const View& view, bool accumulate);
  void multiply(const Gemm& wide, const View& to);

  Products& products_;
  const Kernels& kernels_;
  float* free_ = nullptr;  // the memory for copies that is not taken yet
};

}  // namespace megalith::cpu
