#pragma once

#include "libcore/ops/activation.h"
#include "libcore/ops/linear.h"

namespace megalith {

/// Calls `run` with the ops that together do what a product with an epilogue does, in their order: the
/// product alone, which is no product with an epilogue, and the op that its epilogue stands for. Defined here
/// because CUDA's plugin takes no body from the core's .cpp files.
template <class Run>
void for_each_part(const Gemm& op, const Run& run) {
  constexpr ActivationFunction kFunction = ActivationFunction::kGeluTanh;
  Gemm product = op;
  product.before_gelu = product.bias_grad = {};
  product.gelu_grad_at = {};
  if (op.before_gelu) product.c = op.before_gelu;
  run(product);
  if (op.before_gelu) run(Activate{.y = op.c, .x = op.before_gelu, .function = kFunction});
  if (op.gelu_grad_at) run(ActivateGrad{.dx = op.c, .dy = op.c, .x = op.gelu_grad_at, .function = kFunction});
  if (op.bias_grad) run(BiasGrad{.dbias = op.bias_grad, .dy = op.a});
}

}  // namespace megalith
