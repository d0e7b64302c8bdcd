#pragma once

#include <ostream>
#include <string>

#include "libcore/data/shards/shard_plan.h"
#include "libcore/data/shards/shard_set.h"

namespace megalith {

/// What `megalith-data shards` prints.

/// The plan's shards, one after another: each part of a file that it reads, in bytes counted from 0, and
/// about how many tokens that is, at 4 bytes of text a token and 4 bytes of text for each compressed one. As
/// JSON one object a line.
void print_plan(const ShardPlan& plan, const std::vector<PlannedFile>& files, bool as_json,
                std::ostream& out);

/// How the numbers of missing shards are printed. kSlurm: as an array of jobs, "1-2,5-10". kLines: one a
/// line.
enum class MissingFormat { kSlurm, kLines };
/// Prints the shards that are missing and can be done, if there are any, and says on stderr which ones failed
/// and why. Returns the exit code: 0 if all shards are complete, 75 if some can be done, 65 if all others
/// have failed.
int print_missing(const ShardSet& set, MissingFormat format, std::ostream& out);

}  // namespace megalith
