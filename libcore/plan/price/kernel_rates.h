#pragma once

#include "libcore/plan/price/candidate.h"
#include "libcore/plan/profile/rate_fit.h"

namespace megalith {

/// What a device does per second, and from that the time of a kernel. Seconds, bytes, operations.
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
  /// The faster of 16 bits and what the precision allows, only a part of which is reached.
  double product_flops() const;

  /// [rows, depth] by [depth, columns] at `flops`; 0 if one of them is 0.
  double product(double rows, double columns, double depth, double flops) const;
  /// `count` products of that size in one kernel, such as Transformer Engine's grouped GEMM: they share the
  /// multiprocessors, so only the last wave is not full.
  double grouped_product(double rows, double columns, double depth, double count) const;

  /// The share of the peak that flash attention's forward pass reaches on heads of `channels`.
  double flash_rate(double channels) const;

  /// The time that host and device together take for kernels of `device` seconds, which the host starts
  /// meanwhile.
  double with_host(double device, double kernels) const;
};

/// The coefficient of the attention kernel's rate; nullptr for a kernel that keeps the scores.
double Coefficients::*flash_coefficient(AttentionKernel);
/// Prices the points of a profile like the plan's layers: products and attention by their sizes, memory-bound
/// ops by their bytes, a start by what a kernel takes in addition to its work.
PointPricer point_pricer(const PlanProblem&);

/// sqrt(sqrt(a^4 + b^4)): the larger of two times that overlap almost completely.
double smooth_max(double a, double b);

/// Sustained FLOP/s of the device's matrix units in 16 bits (or fp32), before any loss within a product.
double sustained_flops(const PlanProblem&);

}  // namespace megalith
