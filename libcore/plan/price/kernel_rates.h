#pragma once

#include "libcore/plan/price/candidate.h"
#include "libcore/plan/profile/rate_fit.h"

namespace megalith {

/// The rates of a device, and the times of kernels that follow from them. Units: seconds, bytes, operations.
struct KernelRates {
  explicit KernelRates(const PlanProblem& problem);

  const PlanProblem& p;
  const Coefficients& k;
  const Accelerator& d;
  double e;  // bytes of an activation
  double peak;
  double bandwidth;

  bool cpu() const { return d.multiprocessors == 0; }
  double gap() const { return cpu() ? d.op_start : k.kernel_gap; }
  double stream(double bytes) const { return bytes / bandwidth + gap(); }
  bool narrow() const;  // products of 8 or 4 bits
  /// FLOP/s of the layers' matrix products. In 8 or 4 bits only a part (narrow_rate) of the gain over 16 bits
  /// is reached.
  double product_flops() const;

  /// Seconds of the product [rows, depth] by [depth, columns] at `flops` FLOP/s; 0 if one of the sizes is 0.
  double product(double rows, double columns, double depth, double flops) const;
  /// `count` products of that size in one kernel, such as Transformer Engine's grouped GEMM: they share the
  /// multiprocessors, so only the last wave is not full.
  double grouped_product(double rows, double columns, double depth, double count) const;

  /// The share of the peak that flash attention's forward pass reaches on heads of `channels`.
  double flash_rate(double channels) const;

  /// Seconds of `kernels` kernels that take the device `device` seconds while the host launches them.
  double with_host(double device, double kernels) const;
};

/// The coefficient of the attention kernel's rate; nullptr for a kernel that keeps the scores.
double Coefficients::*flash_coefficient(AttentionKernel);
/// Prices the points of a profile in the same way as the plan's layers: products and attention by their
/// sizes, memory-bound ops by their bytes, a start by what a kernel takes in addition to its work.
PointPricer point_pricer(const PlanProblem&);

/// sqrt(sqrt(a^4 + b^4)): the larger of two times that overlap almost completely.
double smooth_max(double a, double b);

/// Sustained FLOP/s of the device's matrix units in 16 bits (or fp32), before any loss within a product.
double sustained_flops(const PlanProblem&);

}  // namespace megalith
