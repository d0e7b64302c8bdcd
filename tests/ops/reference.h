#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "libcore/ops/activation_function.h"
#include "libcore/tensor/row_positions.h"

namespace megalith::test {

/// References for every backend: the ops as plain loops in fp64, written from the comments of the op structs.
using Values = std::vector<double>;

struct GemmShape {
  int64_t m, n, k;
  bool trans_a = false, trans_b = false;
};
Values reference_gemm(const GemmShape&, const Values& a, const Values& b);

/// x [n, h]; centred: LayerNorm, otherwise RmsNorm (b is not read).
struct NormShape {
  int64_t h;
  double eps;
  bool centred;
};
struct NormResult {
  Values y, mean, rstd;
};
NormResult reference_norm(const NormShape&, const Values& x, const Values& w, const Values& b);

double reference_activation(double x, ActivationFunction);
Values reference_swiglu(const Values& x, int64_t f);  // x [n, 2, f]

/// The dropout factor of one element by DropoutKey's rule: 0 or 1 / (1 - p).
struct MaskPlace {
  double p;
  uint32_t seed, layer, site;
  int64_t sample, position, column;
};
double reference_mask(const MaskPlace&);

struct HeadShape {
  int64_t s, b, groups, r, head;
  int64_t qkv(int64_t position, int64_t sequence, int64_t group, int64_t slot) const {
    return (((position * b + sequence) * groups + group) * (r + 2) + slot) * head;
  }
  int64_t out(int64_t position, int64_t sequence, int64_t query_head) const {
    return ((position * b + sequence) * groups * r + query_head) * head;
  }
  int64_t qkv_size() const { return s * b * groups * (r + 2) * head; }
  int64_t out_size() const { return s * b * groups * r * head; }
};
Values reference_rope(const HeadShape&, const Values& qkv, const Values& cos, const Values& sin, int64_t half,
                      const RowPositions& rows);

struct AttentionResult {
  Values out, lse;  // lse [b, heads, s]
};
/// mask(sequence, head, query, key) multiplies the probability; empty: no dropout.
using MaskFunction = std::function<double(int64_t, int64_t, int64_t, int64_t)>;
AttentionResult reference_attention(const HeadShape&, const Values& qkv, double scale,
                                    const MaskFunction& mask);

/// log(sum of exp) minus the logit of the target.
double reference_nll(const double* logits, int64_t columns, int64_t target);

/// d f / d x[i] by central differences, for each i in `places`; f is evaluated in fp64.
Values numeric_gradient(const std::function<double(const Values&)>& f, Values x,
                        const std::vector<size_t>& places);

}  // namespace megalith::test
