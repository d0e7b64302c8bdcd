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
  bool logs = true;  // whether its lines are logged: true for rank 0 and for ranks with a log of their own
};

/// What a rank does once the ranks are connected. `ranks` is null when all ranks are threads of this process.
using RankBody = std::function<PretrainResult(const RankWorld* ranks)>;
/// Connects to the other ranks, if any, and runs `body`; if that fails, tells the others. All ranks must pass
/// the same `agreed`. A Stopped that `body` throws becomes the result. `config` says how long to wait for the
/// others.
PretrainResult as_rank(const PretrainConfig& config, const Json& agreed,
                       const std::optional<LaunchedRank>& rank, const RankBody& body);
/// This process as one of the connected ranks. `ranks` must outlive the result.
ProcessRank process_rank(const RankWorld& ranks);
/// Logs where each rank runs, and its position in the layout.
void log_ranks(const RankWorld& ranks, const PretrainConfig& config);

/// The options that must be the same on all ranks. Paths to read and write may differ between machines, and
/// so may the number of cores; they are not included.
Json agreed_options(const PretrainConfig&);
/// Logs the sizes of the groups of ranks in Megatron's words.
void log_world(const ParallelConfig&);

/// Completes the configuration once the ranks are connected; rank 0 may plan and tell the others. Every rank
/// calls it and gets the same configuration. `world` is null when all ranks are in this process.
using Settle = std::function<PretrainConfig(Communicator* world)>;

/// The whole of apps/pretrain: connects to the other ranks if there are any, reads the tokenizer, opens and
/// checks the data, trains. `config` is complete except for the vocabulary's size, which the tokenizer sets,
/// unless `settle` completes it. A stop requested before the first step takes effect between the opening of
/// two data sets if there is one process, and after that step if there are several. A rank that fails tells
/// the others, which then end with kComm; its own message begins with its number, as in "rank 3: ".
/// `thread_log` is for ranks that are threads of this process.
PretrainResult pretrain(PretrainConfig config, const StopSignal& stop,
                        const std::optional<LaunchedRank>& rank = {}, const Settle& settle = {},
                        const ThreadLog& thread_log = {});

/// --dry-run: opens tokenizer and data like a run, and passes to `print` what the run would do
/// (dry_run_text()). Needs only one process for any number of ranks. Throws kUsage afterwards when a rank
/// takes more than TrainConfig::device_memory, as the run would.
void describe_run(PretrainConfig config, const std::function<void(const std::string&)>& print);

}  // namespace megalith
