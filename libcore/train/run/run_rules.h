#pragma once

#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/io/run/run_files.h"
#include "libcore/json/json.h"

namespace megalith {

/// Reports three kinds of problems: what this version cannot do (expert ranks, several ranks on GPUs),
/// a layout with another number of ranks than the run has processes or --nproc, and missing options that
/// training needs.
void check_run(const PretrainConfig&, Problems&);

/// Throws kUsage when the run would write a file that it reads, write two outputs to one file, or write to
/// something that cannot be written. `files`: the files that the program has already listed.
void check_files(const PretrainConfig&, RunFiles files);
/// Adds the run's outputs to `files`: the files of figures, report, trace and log, and the checkpoints in
/// --save. The checkpoints in --load are added as an input.
void add_run_outputs(RunFiles& files, const PretrainConfig&);

/// Reports a layout that needs another number of ranks than the run has.
void check_ranks(const ParallelConfig&, Problems&);

/// Throws kUsage, with a list of all differences, when the checkpoint's model has other parameters than
/// `model`. `args`: the checkpoint's options; `from`: its name in messages; `ways_out`: what the user can do
/// besides giving the checkpoint's options. Dropout, initial values, sequence length (without a position
/// table) and vocabulary padding may differ.
void require_same_model(const ModelConfig& model, const Json& args, const std::string& from,
                        const std::string& ways_out);

/// The differences between the run's and a checkpoint's options that determine the order of samples. `args`:
/// the checkpoint's options; `from`: its name in messages.
std::vector<Difference> sample_order_differences(const PretrainConfig&, const Json& args,
                                                 const std::string& from);

}  // namespace megalith
