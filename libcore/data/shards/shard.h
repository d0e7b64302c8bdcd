#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// One of `count` parts of the work of a run, numbered from 0. Each is done by a process of its own.
struct Shard {
  int64_t index = 0, count = 1;
  bool operator==(const Shard&) const = default;

  /// What the shard's outputs have after their common name: "-00003-of-00020".
  std::string suffix() const;
};

/// The most shards of a run: far more than any scheduler starts. A larger number is a typing mistake.
constexpr int64_t kMaxShards = 1'000'000;

/// Consecutive shards of one run, [first, last].
struct ShardRange {
  int64_t first = 0, last = 0, count = 1;
};
/// Reads "3/20" or "5-9/20". Nothing if the text is neither, or if the shards are not in [0, count).
std::optional<ShardRange> parse_shards(std::string_view text);

/// The number of this process among those that an engine started, and the variable that says so: the first
/// of MEGALITH_SHARD, SLURM_ARRAY_TASK_ID, SLURM_PROCID (in a step only: a batch script has it, too, and is
/// one process) and JOB_COMPLETION_INDEX (of an Indexed Job of Kubernetes) that is set. Nothing if none is.
/// kUsage if it holds no number.
struct EngineIndex {
  std::string variable;
  int64_t index;
};
std::optional<EngineIndex> engine_index();

/// Numbers in ascending order as schedulers of job arrays take them: "1-2,5-10,99".
std::string ranges_text(const std::vector<int64_t>& numbers);

}  // namespace megalith
