#include "libcore/parallel/rank_communicators.h"

namespace megalith {

bool closes_ring(const ParallelConfig& parallel) {
  return parallel.layers_per_chunk || parallel.chunks(1) > 1;
}

RankCommunicators communicators_of(const ParallelConfig& parallel, const Coord& at) {
  RankCommunicators out;
  const auto group = [&](int ranks) {
    if (ranks > 1) out.groups.push_back(ranks);
  };
  const auto shared = [&](int ranks) {  // with the world's, if these are all ranks
    if (ranks < parallel.world) group(ranks);
  };
  const int stages = parallel.pipeline;
  const bool first = at.pipeline == 0, last = at.pipeline + 1 == stages;
  group(parallel.world);
  shared(parallel.tensor);
  shared(parallel.copies());
  group(parallel.context);
  group(parallel.context);  // in the reverse order
  if (stages == 1) return out;
  if (first || last) shared(2);  // the ends of the pipeline, for a tied table
  const bool ring = closes_ring(parallel);
  out.sends = (ring || !last) + (ring || !first);  // activations and their gradients
  out.receives = (ring || !first) + (ring || !last);
  return out;
}

}  // namespace megalith
