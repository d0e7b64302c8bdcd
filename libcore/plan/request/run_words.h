#pragma once

#include <string>

#include "libcore/options/cli.h"

namespace megalith {

/// Options of a training command that a plan does not change: its schedule, data, checkpoints and tokenizer.
/// Each option begins with a blank and is quoted for a shell.
struct RunWords {
  std::string ours;      // for megalith-pretrain
  std::string megatron;  // those that Megatron-LM's pretrain_gpt.py has, as it spells them
};

/// The given options of the groups Training, Data, Checkpoint and Tokenizer, except those that a plan
/// decides.
RunWords run_words(const Options& given);

}  // namespace megalith
