#include "libcore/plan/price/expert_price.h"

#include <algorithm>
#include <cmath>

#include "libcore/plan/price/links.h"
#include "libcore/plan/shape/parameter_count.h"

namespace megalith {
namespace {

/// The tokens' ways to their experts and back, in 16 bits; in 8 bits the way there takes half as long.
constexpr double kWays = 2, kNarrowWays = 1.5;

/// Tokens of a microbatch on one device: each tensor rank has a part of the sequence (S2).
double tokens_of(const PlanProblem& p, const LayerShape& s) {
  return static_cast<double>(p.model.seq_length) * s.micro_batch / s.context / s.tensor;
}

struct ExpertPricer {
  const KernelRates& r;
  const LayerShape& s;
  const ModelShape& m = r.p.model;
  double tokens = tokens_of(r.p, s);
  double sent = tokens * m.router_topk;  // copies of tokens that the device sends
  // Copies that arrive on average: ranks that share an expert exchange theirs.
  double mean_rows = sent * s.expert_tensor;
  double local = static_cast<double>(m.expert_count()) / s.expert;
  double ffn = static_cast<double>(m.expert_ffn) / s.expert_tensor;
  TokenImbalance load = m.rank_imbalance(s.expert);
  double fullest = load.at(r.p.imbalance_point);
  double rows = mean_rows * fullest;
  double h = m.hidden, e = r.e, g = gates(m);

  double grouped(double out, double in) const { return r.grouped_product(rows / local, out, in, local); }
  /// The product for the weights' gradients. Its inner dimension is the number of tokens of an expert.
  double grouped_gradient(double out, double in) const {
    return r.grouped_product(out, in, rows / local, local);
  }
  /// The router: scores, softmax, the choice of experts and the counts of tokens, in fp32.
  double router(bool forward) const {
    const double experts = m.expert_count(), passes = 4.0 * 6 * tokens * experts;
    const double one = r.product(tokens, experts, h, r.peak);
    return (forward ? one : r.product(tokens, h, experts, r.peak) + r.product(experts, h, tokens, r.peak)) +
           r.stream(passes);
  }
  /// Copies of tokens are sorted by expert. If copies from several ranks arrive for several experts, the rank
  /// sorts them again by its own experts. The way back undoes this and sums each token's copies.
  double permutations() const {
    const bool sorted_again = s.expert > 1 && local > 1;
    const double bytes = 2 * e * h * (2 * sent + (sorted_again ? 2 * rows : 0));
    return bytes / r.bandwidth + 4 * r.gap();
  }
  double activation(bool forward) const { return r.stream(rows * ffn * e * (forward ? g + 1 : 2 * g + 1)); }
  double narrowing(double times) const {
    return r.narrow() ? times * r.stream(rows * (h + ffn) * (e + 2)) : 0;
  }
  double forward() const {
    return router(true) + permutations() + grouped(g * ffn, h) + grouped(h, ffn) + activation(true) +
           narrowing(1);
  }
  double backward() const {
    return router(false) + permutations() + grouped(h, g * ffn) + grouped(ffn, h) +
           grouped_gradient(g * ffn, h) + grouped_gradient(h, ffn) + activation(false) + narrowing(2);
  }
  double launches() const {
    const double per_product = r.narrow() ? 2 : 1;  // below 16 bits, one more that casts the tokens
    return r.k.routing_launches + r.k.expert_launches * per_product * local;
  }

  /// Seconds in which tokens travel to their experts and back. With a gather, all tokens go to all ranks,
  /// whichever experts they chose.
  double exchange() const {
    const double uneven = m.dispatcher == Dispatcher::kAllGather ? 1 : fullest;
    const double shared =
        ring_seconds(e * h * mean_rows * uneven, s.expert_tensor, group_link(r.p, s.expert_tensor, 1));
    if (s.expert == 1) return 2 * shared;
    const TokenTraffic traffic = token_traffic(r.p, s);
    const double lost = 1 + r.k.congestion * std::max(0.0, std::log2(traffic.machines / 2));
    const bool flex = m.dispatcher == Dispatcher::kFlex;
    const double link = (flex ? r.k.link_rate : r.k.exchange_rate) * r.d.link_bandwidth;
    const double network = (flex ? r.k.flex_rate : r.k.exchange_rate) * r.d.network_bandwidth / lost;
    const double latency = traffic.machines > 1 ? r.k.network_latency : r.k.link_latency;
    const double one =
        uneven * (traffic.inside / link + traffic.outside / network) + (1 + std::log2(s.expert)) * latency;
    return (r.p.software.narrow_dispatch ? kNarrowWays : kWays) * one + 2 * shared;
  }

  ExpertPrice price() const {
    const double most = mean_rows * load.high, act = most * ffn * e;
    ExpertPrice out{.forward = forward(), .backward = backward()};
    out.launches = launches();
    out.exchange = exchange();
    out.activation = activation(true);
    // 8-bit products keep their inputs in 8 bits.
    const double saved = r.narrow() ? most * (h + ffn) * (e - 1) : 0;
    out.kept_tokens = most * h * e;
    out.kept_act = act;
    // Also kept: the weights of the copies, and each token's scores, probabilities and choices.
    out.kept = out.kept_tokens + g * act + act - saved + 4 * most + 9 * tokens * m.expert_count();
    out.transient = 2 * e * h * most;
    return out;
  }
};

/// The mean number of machines, out of `machines`, that hold one of the expert groups chosen for a token, if
/// every group is equally likely.
double machines_of_groups(const ModelShape& m, double machines) {
  if (!m.router_groups || !m.group_topk) return machines;
  const double groups = *m.router_groups, each = std::max(1.0, groups / machines);
  double none = 1;  // probability that no group of a machine is among the chosen ones
  for (int i = 0; i < *m.group_topk; ++i) none *= std::max(0.0, 1 - each / (groups - i));
  return std::max(1.0, machines * (1 - none));
}

}  // namespace

TokenTraffic token_traffic(const PlanProblem& p, const LayerShape& s) {
  const ModelShape& m = p.model;
  const int domain = std::min(p.machine.world, p.machine.domain());
  const double here = std::clamp(static_cast<double>(domain) / s.expert_tensor, 1.0, double{1} * s.expert);
  const double tokens = tokens_of(p, s), bytes = p.element() * m.hidden;
  TokenTraffic out{.machines = s.expert / here};
  const double elsewhere = (s.expert - here) / s.expert;
  const double copies = m.dispatcher == Dispatcher::kAllGather ? s.expert : m.router_topk;
  out.inside = bytes * tokens * copies * (here - 1) / s.expert;
  out.outside = bytes * tokens * copies * elsewhere;
  if (m.dispatcher == Dispatcher::kFlex && out.machines > 1) {
    // among: the machines with experts that the router may choose for a token. visited: how many of them hold
    // a chosen expert, on average, if the router chooses evenly.
    const double among = machines_of_groups(m, out.machines);
    const double visited = among * (1 - std::pow(1 - 1 / among, m.router_topk));
    out.outside = bytes * tokens * visited * elsewhere;
    out.inside = bytes * tokens * copies * (here - 1) / here;
  }
  return out;
}

ExpertPrice price_experts(const KernelRates& rates, const LayerShape& shape) {
  return ExpertPricer{rates, shape}.price();
}

}  // namespace megalith
