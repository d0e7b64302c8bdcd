#pragma once

#include <string>

#include "libcore/options/cli.h"

namespace megalith {

/// The options of a training command that a plan does not change (its schedule, data, checkpoints, tokenizer,
/// time limits of ranks and order of their sums), as text for a shell: a blank precedes each option, and its
/// values are quoted.
struct RunWords {
  std::string ours;      // for megalith-pretrain
  std::string tuning;    // those that megalith-finetune has
  std::string megatron;  // those that Megatron-LM's pretrain_gpt.py supports, in its spelling
};

/// The given options of the groups Training, Data, Checkpoint or Checkpoints, and Tokenizer, except those
/// that a plan decides; of Parallelism only buckets of gradients, time limits and the order of sums.
RunWords run_words(const Options& given);

}  // namespace megalith
