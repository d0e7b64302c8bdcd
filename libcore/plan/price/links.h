#pragma once

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// How ranks reach each other: bytes/s per rank, seconds per hop.
struct Link {
  double bandwidth = 1, latency = 0;
};
/// The link between `ranks` ranks whose numbers differ by `stride`. If several ranks of the group are on one
/// machine, they use their network devices together.
Link group_link(const PlanProblem&, int ranks, int stride);
/// An all-reduce is a scatter followed by a gather.
constexpr double kHalvesOfAllReduce = 2;
/// Seconds of one half of an all-reduce in a ring: a gather or a scatter of `bytes` in total.
double ring_seconds(double bytes, int ranks, Link);
/// Seconds that a sum of `bytes` over `ranks` devices takes longer in rank order (PlanProblem::rank_order):
/// each rank copies its part, reads that of all ranks and writes the sum. The parts travel as long as in a
/// ring. 0 where ranks do not send each other what they add (sends_parts()). Belief: nothing was measured.
double ordered_sum_seconds(const PlanProblem&, double bytes, int ranks);

}  // namespace megalith
