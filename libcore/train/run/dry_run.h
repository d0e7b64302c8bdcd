#pragma once

#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/step/memory.h"

namespace megalith {

/// The memory of a run's ranks, found without allocating it.
struct DryMemory {
  std::vector<ModelRank> ranks;
  bool on_host;  // the run computes on the CPU, as --device gpu does where none answers
};
DryMemory dry_memory(const PretrainConfig&);
/// What --dry-run prints of a run that is complete and checked: the ranks' layout, each model rank's memory,
/// the pipeline's order as a picture, and the samples of the first step. Nothing is allocated or written.
std::string dry_run_text(const PretrainConfig&, const std::vector<ModelRank>&, const DataSets&,
                         const Tokenizer*);

/// The order of a pipeline with every forward one column long and every backward two, a line for each rank:
///   rank 0 | 0 1 .  0--1--
/// "." waits. Microbatches are numbered by their last digit, chunks follow as letters ("0a"). At most
/// `columns` columns are drawn.
std::string schedule_picture(const ParallelConfig&, const ModelConfig&, int microbatches, int columns = 100);

}  // namespace megalith
