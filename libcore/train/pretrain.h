#pragma once

#include <functional>
#include <optional>

#include "libcore/launch/environment.h"
#include "libcore/train/loop.h"

namespace megalith {

/// This process as one of several ranks.
struct LaunchedRank {
  Launch launch;
  bool logs = true;  // whether its lines are wanted: rank 0's, and those of ranks with a log of their own
};

/// What a rank does once it knows the others; empty: all ranks are threads of this process.
using RankBody = std::function<PretrainResult(const std::optional<ProcessRank>&)>;
/// Meets the other ranks if there are any, all of which must be given `agreed` alike, and runs `body`, whose
/// failure the others are told. A stop that body throws (Stopped) is a result. `config` says where and how
/// long to wait.
PretrainResult as_rank(const PretrainConfig& config, const Json& agreed,
                       const std::optional<LaunchedRank>& rank, const RankBody& body);

/// What all ranks have to be given alike: not where a rank writes, nor how many cores its machine has.
Json agreed_options(const PretrainConfig&);
/// Logs the sizes of the groups of ranks in Megatron's words.
void log_world(const ParallelConfig&);

/// The whole of apps/pretrain: meets the other ranks if there are any, reads the tokenizer, opens and checks
/// the data, trains. `config` is complete but for the vocabulary's size, which comes from the tokenizer. A
/// stop that is asked for before the first step ends one rank alone between two data sets, or else after that
/// step. A rank that fails tells the others, which then end with kComm; "rank 3: " comes before its message.
PretrainResult pretrain(PretrainConfig config, const StopSignal& stop,
                        const std::optional<LaunchedRank>& rank = {});

}  // namespace megalith
