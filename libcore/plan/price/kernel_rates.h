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
  bool narrow() const;  // whether products are in 8 or 4 bits
  /// FLOP/s of the layers' matrix products. Products in 8 or 4 bits reach only a part (narrow_rate) of their
  /// gain over 16 bits.
  double product_flops() const;

  /// Seconds of the product [rows, depth] by [depth, columns] at `flops` FLOP/s; 0 if one of the sizes is 0.
  double product(double rows, double columns, double depth, double flops) const;
  /// `count` products of that size in one kernel, such as Transformer Engine's grouped GEMM: they share the
  /// multiprocessors, so only the last wave is not full.
  double grouped_product(double rows, double columns, double depth, double count) const;

  /// FLOP/s of flash attention's forward pass on heads of `channels`. Its softmax leaves the matrix units
  /// idle in between, so that power does not lower the clock as it does in large products.
  double flash_flops(double channels) const;

  /// Seconds of `kernels` kernels: their work takes the device `device` seconds, and the host launches them
  /// meanwhile.
  double with_host(double device, double kernels) const;
};

/// The coefficient that holds the rate of an attention kernel; nullptr for a kernel that keeps the scores.
double Coefficients::*flash_coefficient(AttentionKernel);
/// Prices the points of a profile as the layers of a plan are priced: products and attention by their sizes,
/// memory-bound ops by their bytes, and a start by the time that a kernel takes in addition to its work.
PointPricer point_pricer(const PlanProblem&);

/// sqrt(sqrt(a^4 + b^4)), in the unit of a and b: a smooth maximum, for two times that overlap almost
/// completely. Two equal times take 2^(1/4) = 1.19 of one. The fourth power is a belief (layer_price.cpp).
double smooth_max(double a, double b);

/// Sustained FLOP/s of the device's matrix units in 16 bits (or fp32), before any loss within a product.
double sustained_flops(const PlanProblem&);

}  // namespace megalith
