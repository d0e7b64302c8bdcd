#pragma once

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// How ranks reach each other: bytes/s of one rank, seconds a hop.
struct Link {
  double bandwidth = 1, latency = 0;
};
/// For a group of `ranks` ranks that lie `stride` apart. Where a group has several ranks on a machine, their
/// network devices work together.
Link group_link(const PlanProblem&, int ranks, int stride);
/// One direction of a ring: a gather or a scatter of `bytes` in all; an all-reduce is two.
double ring_seconds(double bytes, int ranks, Link);

}  // namespace megalith
