#pragma once

#include "libcore/data/merge/merge.h"
#include "libcore/io/run/run_files.h"

namespace megalith {

/// Joins the shards of a run (find_shards(config.shards)) to the datasets that one process would have
/// written: the same .bin and .idx, the same sidecar but for its `bin_parts`, which are the shards', and with
/// config.rejects the same rejected lines. kData if a shard is missing, is of another run, or does not have
/// the bytes that its sidecar describes (of .bin files only their number, unless config.verify is set).
/// kUsage if an output is an input or one of `files`.
void merge_shards(const MergeConfig& config, RunFiles files);

}  // namespace megalith
