#pragma once

#include <optional>

#include "libcore/launch/environment.h"
#include "libcore/train/loop.h"

namespace megalith {

/// This process as one of several ranks.
struct LaunchedRank {
  Launch launch;
  bool logs = true;  // whether its lines are wanted: rank 0's, and those of ranks with a log of their own
};

/// The whole of apps/pretrain: meets the other ranks if there are any, reads the tokenizer, opens and checks
/// the data, trains. `config` is complete but for the vocabulary's size, which comes from the tokenizer. A
/// rank that fails tells the others, which then end with kComm; "rank 3: " comes before its message.
PretrainResult pretrain(PretrainConfig config, const std::optional<LaunchedRank>& rank = {});

}  // namespace megalith
