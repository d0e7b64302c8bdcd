#pragma once

#include <string_view>
#include <vector>

#include "libcore/options/fate.h"

namespace megalith {

/// Programs of ours that take other tools' command lines; a set of them is their sum.
enum Program : unsigned { kPretrain = 1, kFinetune = 2, kAutoplan = 4, kPreprocess = 8 };

/// Runs in which an argument means something, where a log tells of the run.
enum class Runs { kAll, kContextParallel, kBelow16Bits, kExperts };

/// What an option of Megatron-LM, PaddleNLP or LLaMA-Factory is here, where no field has it.
struct ForeignOption : OptionFate {
  unsigned programs = 0;          // sum of those of which this holds
  Runs runs = Runs::kAll;         // of a log
  std::string_view repeats = {};  // in a log: the argument whose value it has, or else is refused
};

/// All of them: what command lines, files, logs and the pages below docs/ know. A name is there once for each
/// program at most.
const std::vector<ForeignOption>& foreign_options();

/// Those of one program, for Options::fates(). What chooses an implementation of the same mathematics, a
/// launcher's plumbing or a report without equivalent is ignored, and by the planner what changes nothing of
/// a plan; what would change the result is refused.
std::vector<OptionFate> fates_in(Program);

/// What an argument of a log of Megatron-LM's is to the planner; null: nothing.
const ForeignOption* logged_option(std::string_view name);

}  // namespace megalith
