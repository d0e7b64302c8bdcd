#pragma once

#include "libcore/plan/price/kernel_rates.h"
#include "libcore/plan/price/layer_price.h"

namespace megalith {

/// What LoRA adapters (PlanProblem::tuning) and weights of 8 bits add to one layer for one microbatch.
/// All figures are 0 if the problem has none.
struct AdapterPrice {
  double forward = 0, backward = 0;  // seconds
  double launches = 0;               // number of kernels of the forward pass
  double kept = 0;                   // bytes kept for the backward pass
};
AdapterPrice price_adapters(const KernelRates&, const LayerShape&);

/// The parameters on one rank that have gradients. `all`: those of the model.
ParameterCount trained_parameters(const PlanProblem&, const ParameterCount& all, int tensor);
/// The bytes of one rank's weights, those of adapters included. `all`: the parameters of the model.
ParameterCount weight_bytes(const PlanProblem&, const ParameterCount& all, int tensor);

}  // namespace megalith
