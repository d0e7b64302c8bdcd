#pragma once

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// How ranks reach each other: bytes/s per rank, seconds per hop.
struct Link {
  double bandwidth = 1, latency = 0;
};
/// The link between `ranks` ranks whose numbers differ by `stride`. If a group has several ranks on a
/// machine, their network devices work together.
Link group_link(const PlanProblem&, int ranks, int stride);
/// An all-reduce is a scatter and a gather.
constexpr double kHalvesOfAllReduce = 2;
/// One direction of a ring: a gather or a scatter of `bytes` in total, half of an all-reduce.
double ring_seconds(double bytes, int ranks, Link);

}  // namespace megalith
