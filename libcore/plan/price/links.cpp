#include "libcore/plan/price/links.h"

#include <algorithm>
#include <cmath>

namespace megalith {
namespace {

/// The largest group for which NCCL uses a ring. Above it NCCL uses trees, whose number of hops grows with
/// the logarithm of the size. Belief.
constexpr int kLongestRing = 16;

}  // namespace

Link group_link(const PlanProblem& p, int ranks, int stride) {
  const Coefficients& k = *p.coefficients;
  const Accelerator& d = p.machine.device;
  const int domain = p.machine.domain();
  if (ranks * stride <= domain || p.machine.world <= domain)
    return {k.link_rate * d.link_bandwidth, k.link_latency};
  const double neighbours = std::max(1, domain / stride);  // ranks of the group on one machine
  const double machines = ranks / neighbours;
  const double lost = 1 + k.congestion * (machines > 2 ? std::log2(machines / 2) : 0);
  return {std::min(k.network_rate * d.network_bandwidth * neighbours / lost, k.link_rate * d.link_bandwidth),
          k.network_latency};
}

double ring_seconds(double bytes, int ranks, Link link) {
  if (ranks <= 1) return 0;
  const double hops =
      ranks <= kLongestRing ? ranks - 1.0 : kLongestRing - 1 + std::log2(ranks / double{kLongestRing});
  return (ranks - 1.0) / ranks * bytes / link.bandwidth + hops * link.latency;
}

double ordered_sum_seconds(const PlanProblem& p, double bytes, int ranks) {
  if (ranks <= 1 || !p.sends_parts()) return 0;
  constexpr double kCopiedAndWritten = 3;  // parts: one read and written, and the sum
  const double moved = bytes + kCopiedAndWritten * bytes / ranks;
  return moved / (p.coefficients->memory_rate * p.machine.device.memory_bandwidth);
}

}  // namespace megalith
