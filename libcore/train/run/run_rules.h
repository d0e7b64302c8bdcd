#pragma once

#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/io/run/run_files.h"
#include "libcore/json/json.h"

namespace megalith {

/// Reports what this version cannot do (expert ranks, --fp16 or processes on GPUs), a layout whose number of
/// ranks is not that of the processes or --nproc, and missing options that training needs.
void check_run(const PretrainConfig&, Problems&);

/// kUsage when a file that the run writes is one that it reads, another output, or of a kind that cannot be
/// written. `files`: the files that the program already knows.
void check_files(const PretrainConfig&, RunFiles files);
/// Adds to `files` the folders of checkpoints and the other outputs: figures, report, trace, log.
void add_run_outputs(RunFiles& files, const PretrainConfig&);

/// Reports a layout whose number of ranks is not the number of ranks that there are.
void check_ranks(const ParallelConfig&, Problems&);

/// kUsage, listing every difference, when `args` (a checkpoint's; `from` names it) describe a model with
/// other parameters than `model`. Dropout, initial values, sequence length (without a position table) and
/// vocabulary padding may differ.
void require_same_model(const ModelConfig& model, const Json& args, const std::string& from);

/// The differences between the run and a checkpoint (`args`; `from` names it) in options that determine the
/// order of samples.
std::vector<Difference> sample_order_differences(const PretrainConfig&, const Json& args,
                                                 const std::string& from);

}  // namespace megalith
