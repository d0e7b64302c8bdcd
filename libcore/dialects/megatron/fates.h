#pragma once

#include <string_view>
#include <vector>

#include "libcore/options/fate.h"

namespace megalith {

/// Our programs that accept other tools' command lines; bits that can be combined. kLog stands for a log of
/// Megatron-LM: for its arguments with other names than the planner's options, and for those that are refused
/// although the planner has the option.
enum Program : unsigned {
  kPretrain = 1,
  kFinetune = 2,
  kAutoplan = 4,
  kPreprocess = 8,
  kMerge = 16,
  kLog = 32
};

/// The kind of run that a plan is for (OptionFate::only).
struct RunKind {
  bool context = false, experts = false;  // context: ranks share sequences; experts: the model has experts
  bool narrow = false;                    // computes some products with fewer than 16 bits
  bool interleaved = false;               // a pipeline's stages have several chunks

  bool has(std::string_view kind) const;
};

/// What happens to an option of Megatron-LM, PaddleNLP or LLaMA-Factory for which we have no field.
struct ForeignOption : OptionFate {
  unsigned programs = 0;  // the programs to which this applies, as bits
};

/// All foreign options, for command lines, files, logs and the pages below docs/. Each program has a name at
/// most once.
const std::vector<ForeignOption>& foreign_options();

/// The foreign options of one program, for Options::fates(). An option is refused if it would change the
/// result. It is ignored if it only selects an implementation of the same mathematics, internals of a
/// launcher, or a report that we do not have; the planner also ignores an option that does not change a plan.
std::vector<OptionFate> fates_in(Program);

/// The planner's fate of an argument in a log of Megatron-LM; null if the table has none.
const ForeignOption* logged_option(std::string_view name);

}  // namespace megalith
