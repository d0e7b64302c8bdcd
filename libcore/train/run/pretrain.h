#pragma once

#include <functional>
#include <optional>
#include <string>

#include "libcore/json/json.h"
#include "libcore/launch/environment.h"
#include "libcore/launch/rank_world.h"
#include "libcore/train/run/loop.h"

namespace megalith {

/// This process as one of several ranks.
struct LaunchedRank {
  Launch launch;
  bool logs = true;  // whether its lines are wanted: rank 0's, and those of ranks with a log of their own
};

/// What a rank does once it knows the others; null: all ranks are threads of this process.
using RankBody = std::function<PretrainResult(const RankWorld* ranks)>;
/// Meets the other ranks if there are any, all of which must be given `agreed` alike, and runs `body`, whose
/// failure the others are told. A stop that body throws (Stopped) is a result. `config` says how long to
/// wait.
PretrainResult as_rank(const PretrainConfig& config, const Json& agreed,
                       const std::optional<LaunchedRank>& rank, const RankBody& body);
/// This process among the ranks that it has met, which must stay.
ProcessRank process_rank(const RankWorld& ranks);
/// Logs where each rank runs, and its place in the layout.
void log_ranks(const RankWorld& ranks, const PretrainConfig& config);

/// What all ranks have to be given alike: not where a rank reads and writes, which machines may call
/// otherwise, nor how many cores its machine has.
Json agreed_options(const PretrainConfig&);
/// Logs the sizes of the groups of ranks in Megatron's words.
void log_world(const ParallelConfig&);

/// What is left to be decided when the ranks have met, or (null) in one process: rank 0 may plan and tell the
/// others. Called by every rank; gives the complete configuration, the same on all.
using Settle = std::function<PretrainConfig(Communicator* world)>;

/// The whole of apps/pretrain: meets the other ranks if there are any, reads the tokenizer, opens and checks
/// the data, trains. `config` is complete but for the vocabulary's size, which comes from the tokenizer, or
/// `settle` completes it. A stop that is asked for before the first step ends one rank alone between two data
/// sets, or else after that step. A rank that fails tells the others, which then end with kComm; "rank 3: "
/// comes before its message. `thread_log` is for ranks that are threads of this process.
PretrainResult pretrain(PretrainConfig config, const StopSignal& stop,
                        const std::optional<LaunchedRank>& rank = {}, const Settle& settle = {},
                        const ThreadLog& thread_log = {});

/// --dry-run: opens tokenizer and data as a run would, and gives `print` what it would do (dry_run_text()),
/// as one process whatever the number of ranks. kUsage afterwards when a rank takes more than
/// TrainConfig::device_memory, as the run would end.
void describe_run(PretrainConfig config, const std::function<void(const std::string&)>& print);

}  // namespace megalith
