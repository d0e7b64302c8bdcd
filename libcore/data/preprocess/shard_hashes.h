#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "libcore/data/preprocess/content_set.h"
#include "libcore/data/shards/shard.h"

namespace megalith {

/// Exact duplicates among the documents of all shards, found in three steps:
/// 1. each shard writes the hashes of its documents to a folder, SHARD.hashes (preprocess --dedup-write);
/// 2. find_seen() writes for each shard those of its hashes that an earlier shard has, too, SHARD.seen
///    (megalith-data dedup);
/// 3. each shard leaves these documents out, as well as those that are twice in itself (preprocess
/// --dedup-read). Each file holds different hashes in ascending order, 16 bytes each, and has a SHARD.….json
/// beside it, without which it is not complete.

/// What the hashes of a shard depend on.
struct HashesOf {
  Shard shard = {};
  std::string plan = {};       // ShardPlan::digest()
  std::string documents = {};  // a hash of the options that determine the documents
  std::string content = {};    // ShardPlan::content(): of the shard's own inputs
  bool operator==(const HashesOf&) const = default;
};

/// Whether the hashes of this shard are in the folder. kData if what is there is damaged.
bool has_hashes(const std::string& folder, const HashesOf& of);
/// Writes the hashes of the shard's documents, which may be in any order and more than once there; sorts
/// them. Two processes may write the same ones at once. Removes what step 2 found for this shard and for
/// those after it. kIo.
void write_hashes(const std::string& folder, const HashesOf& of, std::deque<ContentHash> hashes);

/// Counts of find_seen().
struct SeenSummary {
  int64_t shards = 0;
  uint64_t documents = 0, seen = 0;  // different documents of each shard, added up; those that are left out
};
/// Step 2. Memory: 4 to 64 KiB for each shard. kNoInput if there are no hashes; kData if those of a shard are
/// missing or damaged, or if they are of several runs.
SeenSummary find_seen(const std::string& folder);

/// A hash of what step 2 found for this shard; nothing if it did not follow on step 1, or for other inputs or
/// options. kData if what is there is damaged.
std::optional<std::string> seen_digest(const std::string& folder, const HashesOf& of);
/// Adds the hashes of the shard that an earlier shard has to `set`. kData if step 2 did not follow on step 1,
/// or if the hashes are those of other inputs or options.
void read_seen(const std::string& folder, const HashesOf& of, ContentSet& set);

}  // namespace megalith
