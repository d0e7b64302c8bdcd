#pragma once

#include <span>
#include <string>
#include <vector>

#include "libcore/json/json.h"
#include "libcore/parallel/communicator.h"
#include "libcore/tensor/span_log.h"

namespace megalith {

/// A complete event of Chrome's trace format (chrome://tracing, Perfetto): when it happened, in microseconds,
/// and where.
struct TraceEvent {
  std::string name, category;
  double begin_us = 0, us = 0;
  int process = 0, thread = 0;
};
Json to_json(const TraceEvent&);

/// What one stream of a rank did.
struct TraceLane {
  std::string name;
  std::vector<SpanLog::Span> spans;
};

/// Writes the lanes of all ranks of `world` to `path`, in one file: each rank is a process, and each of its
/// lanes a thread. Times come from the clocks of the ranks' machines. `ops`: a JSON value that says what the
/// rank's ops took, or nothing; the file's member "ops" has these values by rank, null for a rank without
/// one, if rank 0 gives one. Viewers pass over it. Collective; rank 0 writes. kIo when the file cannot be
/// written.
void write_run_trace(const std::string& path, Communicator& world, const std::string& rank_name,
                     std::span<const TraceLane> lanes, const std::string& ops = {});

}  // namespace megalith
