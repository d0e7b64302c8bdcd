#pragma once

#include "libcore/plan/price/kernel_rates.h"
#include "libcore/plan/price/layer_price.h"

namespace megalith {

/// The cost of one layer's experts for one microbatch on one of the devices that share them, including the
/// exchange of tokens. Seconds are for PlanProblem::imbalance_point, bytes for the upper end of the token
/// imbalance.
struct ExpertPrice {
  double forward = 0, backward = 0;  // seconds of the router, permutations and grouped products
  double launches = 0;               // number of kernels of the forward pass
  /// Seconds in which tokens travel to their experts and back in one pass, if nothing hides them.
  double exchange = 0;
  double activation = 0;   // the activation function's part of `forward`
  double kept = 0;         // bytes kept for the backward pass
  double kept_act = 0;     // the part of `kept` that the activation function produces
  double kept_tokens = 0;  // the part of `kept` that holds the tokens as they arrived
  double transient = 0;    // bytes of tokens in transit
};
ExpertPrice price_experts(const KernelRates&, const LayerShape&);

/// The bytes that one device sends in a microbatch to the experts of its tokens, if all experts get equally
/// many tokens.
struct TokenTraffic {
  double inside = 0, outside = 0;  // bytes over the link, and over the network
  double machines = 1;             // number of machines that the ranks of the experts are on
};
TokenTraffic token_traffic(const PlanProblem&, const LayerShape&);

}  // namespace megalith
