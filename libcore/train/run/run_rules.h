#pragma once

#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/io/run/run_files.h"
#include "libcore/json/json.h"

namespace megalith {

/// Complains about what this version cannot do (expert ranks, --fp16 or processes on GPUs), about a
/// layout of other than the processes' or --nproc ranks, and about what training needs and was not given.
void check_run(const PretrainConfig&, Problems&);

/// kUsage when a file that the run writes is one that it reads, another output, or no file. `files`: what the
/// program knows of already.
void check_files(const PretrainConfig&, RunFiles files);
/// Adds to `files` the folders of checkpoints, and what is written beside them: figures, report, trace, log.
void add_run_outputs(RunFiles& files, const PretrainConfig&);

/// Complains when the layout is of other than the ranks that there are.
void check_ranks(const ParallelConfig&, Problems&);

/// kUsage, with every difference, when `args` (a checkpoint's; `from` names it) describe a model whose
/// parameters are not those of `model`. Dropout, initial values, sequence length (without a position table)
/// and vocabulary padding may differ.
void require_same_model(const ModelConfig& model, const Json& args, const std::string& from);

/// The options that order the samples, as far as a checkpoint's differ.
std::vector<Difference> sample_order_differences(const PretrainConfig&, const Json& args,
                                                 const std::string& from);

}  // namespace megalith
