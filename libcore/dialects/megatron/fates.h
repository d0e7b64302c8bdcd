#pragma once

#include <string_view>
#include <vector>

#include "libcore/options/fate.h"

namespace megalith {

/// Programs of ours that accept other tools' command lines; combined as bits. kLog: arguments in a log of
/// Megatron-LM that are refused although the planner has options of these names, or whose names differ from
/// those of the options.
enum Program : unsigned {
  kPretrain = 1,
  kFinetune = 2,
  kAutoplan = 4,
  kPreprocess = 8,
  kMerge = 16,
  kLog = 32
};

/// Kinds of runs that a plan may be for (OptionFate::only).
struct RunKind {
  bool context = false, experts = false;  // ranks share sequences; there are experts
  bool narrow = false;                    // products below 16 bits
  bool interleaved = false;               // a pipeline's stages have several chunks

  bool has(std::string_view kind) const;
};

/// What happens to an option of Megatron-LM, PaddleNLP or LLaMA-Factory that no field has.
struct ForeignOption : OptionFate {
  unsigned programs = 0;  // bits of the programs that this applies to
};

/// All foreign options, as used for command lines, files, logs and the pages below docs/. A name occurs at
/// most once for each program.
const std::vector<ForeignOption>& foreign_options();

/// The options of one program, for Options::fates(). An option is ignored if it selects an implementation of
/// the same mathematics, a launcher's internals or a report without an equivalent, and by the planner if it
/// does not change a plan. An option that would change the result is refused.
std::vector<OptionFate> fates_in(Program);

/// The planner's fate of an argument in a log of Megatron-LM; null: it has none.
const ForeignOption* logged_option(std::string_view name);

}  // namespace megalith
