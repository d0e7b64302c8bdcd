#pragma once

#include "libcore/plan/price/kernel_rates.h"
#include "libcore/plan/price/layer_price.h"

namespace megalith {

/// The cost of one layer's experts for one microbatch on one device of the ranks that share them, including
/// the exchange of tokens. Seconds at the problem's point of the token imbalance, bytes at its upper end.
struct ExpertPrice {
  double forward = 0, backward = 0;  // router, permutations, grouped products
  double launches = 0;               // kernels of the forward pass
  double exchange = 0;               // tokens to their experts and back, in one pass; nothing hidden
  double activation = 0;             // the activation function's part of `forward`
  double kept = 0;                   // for the backward pass
  double kept_act = 0;               // the part of it that the activation function produces
  double kept_tokens = 0;            // the part of it that holds the tokens as they arrived
  double transient = 0;              // tokens in transit
};
ExpertPrice price_experts(const KernelRates&, const LayerShape&);

/// What a device sends of a microbatch's tokens to their experts if all experts get equally many.
struct TokenTraffic {
  double inside = 0, outside = 0;  // bytes over the link, and over the network
  double machines = 1;             // number of machines that the ranks of the experts are on
};
TokenTraffic token_traffic(const PlanProblem&, const LayerShape&);

}  // namespace megalith
