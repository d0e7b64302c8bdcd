#pragma once

#include "libcore/plan/price/kernel_rates.h"
#include "libcore/plan/price/layer_price.h"

namespace megalith {

/// The experts of one layer for one microbatch on the device whose ranks share them, and what brings tokens
/// there and back. Seconds at the problem's point of the token imbalance, bytes at its upper end.
struct ExpertPrice {
  double forward = 0, backward = 0;  // router, permutations, grouped products
  double launches = 0;               // kernels of the forward pass
  double exchange = 0;               // tokens to their experts and back, in one pass; nothing hidden
  double activation = 0;             // of `forward`, the activation function
  double kept = 0;                   // for the backward pass
  double kept_act = 0;               // of it, what the activation function leaves
  double kept_tokens = 0;            // of it, the tokens as they came
  double transient = 0;              // tokens on their way
};
ExpertPrice price_experts(const KernelRates&, const LayerShape&);

/// What a device sends of a microbatch's tokens to their experts, when all experts get as many.
struct TokenTraffic {
  double inside = 0, outside = 0;  // bytes over the link, and over the network
  double machines = 1;             // that the ranks of the experts lie on
};
TokenTraffic token_traffic(const PlanProblem&, const LayerShape&);

}  // namespace megalith
