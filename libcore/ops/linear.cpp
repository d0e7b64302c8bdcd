#include "libcore/ops/linear.h"

#include "libcore/ops/activation.h"
#include "libcore/ops/checks.h"

namespace megalith {
namespace {

void check_epilogue(const Gemm& op) {
  const int given = (op.before_gelu ? 1 : 0) + (op.gelu_grad_at ? 1 : 0) + (op.bias_grad ? 1 : 0);
  require(given <= 1, op.kName, "one epilogue at most", given, op.c.shape);
  if (op.before_gelu) want_alike(op.kName, "before_gelu and c alike", op.before_gelu, op.c);
  if (op.gelu_grad_at) want_alike(op.kName, "gelu_grad_at and c alike", op.gelu_grad_at, op.c);
  if (op.before_gelu || op.gelu_grad_at)
    require(!op.accumulate, op.kName, "no GELU when accumulating", op.c.shape, op.a.shape);
  if (op.gelu_grad_at || op.bias_grad)
    require(!op.bias, op.kName, "no bias with a gradient's epilogue", op.bias.shape, op.c.shape);
  if (!op.bias_grad) return;
  require(op.trans_a, op.kName, "bias_grad with trans_a only", op.a.shape, op.bias_grad.shape);
  want_vector(op.kName, "bias_grad [m]", op.bias_grad, op.m(), DType::kF32);
}

}  // namespace

void Gemm::check() const {
  want_float(kName, "c", c);
  want_float(kName, "a", a);
  want_dtype(kName, "b, of a's dtype,", b, a.dtype);
  require(c.dtype == DType::kF32 || c.dtype == a.dtype, kName, "c fp32 or of a's dtype", name_of(c.dtype),
          name_of(a.dtype));
  check_epilogue(*this);
  const int64_t a_rows = trans_a ? a.shape.back() : a.shape.rows();
  const int64_t b_rows = trans_b ? b.shape.back() : b.shape.rows();
  const int64_t b_columns = trans_b ? b.shape.rows() : b.shape.back();
  require(a_rows == m(), kName, "as many rows in c as in op(a)", c.shape, a.shape);
  require(b_columns == n(), kName, "as many columns in c as in op(b)", c.shape, b.shape);
  require(b_rows == k(), kName, "equal inner dimensions of op(a) and op(b)", a.shape, b.shape);
  if (!bias) return;
  require(bias.elements() == n(), kName, "one bias per column of c", bias.shape, c.shape);
  require(bias.dtype == c.dtype || bias.dtype == a.dtype, kName, "bias of c's or a's dtype",
          name_of(bias.dtype), name_of(c.dtype));
  require(!accumulate, kName, "no bias when accumulating", bias.shape, c.shape);
}

std::string Gemm::description() const {
  return concat(kName, trans_a ? " wgrad " : trans_b ? " forward " : " dgrad ", m(), " x ", n(), " x ", k());
}

// With an epilogue each tensor is read or written once, where the ops apart also read what they just wrote.
Cost Gemm::cost() const {
  Cost cost{2.0 * static_cast<double>(m()) * static_cast<double>(n()) * static_cast<double>(k()),
            bytes_of(a) + bytes_of(b) + bytes_of(bias) + bytes_of(c) * (accumulate ? 2 : 1) +
                bytes_of(before_gelu) + bytes_of(gelu_grad_at) + 2 * bytes_of(bias_grad)};
  if (before_gelu) cost.flops += Activate{.y = c, .x = before_gelu}.cost().flops;
  if (gelu_grad_at) cost.flops += ActivateGrad{.dx = c, .dy = c, .x = gelu_grad_at}.cost().flops;
  if (bias_grad) cost.flops += BiasGrad{.dbias = bias_grad, .dy = a}.cost().flops;
  return cost;
}

void BiasGrad::check() const {
  want_float(kName, "dy", dy);
  want_vector(kName, "dbias [h]", dbias, dy.shape.back(), DType::kF32);
}

Cost BiasGrad::cost() const {
  return {static_cast<double>(dy.elements()), bytes_of(dy) + 2 * bytes_of(dbias)};
}

}  // namespace megalith
