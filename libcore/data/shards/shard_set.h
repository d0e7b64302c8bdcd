#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/shards/shard.h"
#include "libcore/data/shards/shard_failure.h"

namespace megalith {

/// The shards of a run that are complete, and those that are not.
struct ShardSet {
  int64_t count = 0;
  std::map<int64_t, ShardRecord> complete = {};
  std::map<int64_t, ShardFailure> failed = {};  // not complete, and another attempt would not help
  std::vector<int64_t> missing = {};            // all others, in ascending order
};

/// Finds the datasets of shards whose names begin with `prefix` (PREFIX-00003-of-00020_KEY_document), by
/// their sidecars. A shard is complete if all of its datasets are there. `count`: the number of shards, if
/// none need be there yet. kNoInput if it is not given and there is nothing of a shard. kData if the shards
/// do not belong together: they are of different numbers, inputs or options, one of them is there under
/// another one's name, or the inputs changed between the runs of two neighbours.
ShardSet find_shards(const std::string& prefix, std::optional<int64_t> count = {});

}  // namespace megalith
