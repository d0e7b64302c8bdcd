#pragma once

#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/step/memory_limits.h"

namespace megalith {

/// The memory of a run's ranks, determined without allocating it.
struct DryMemory {
  RunShape run;
  MemoryLeft left;
  std::vector<ModelRank> ranks;
};
DryMemory dry_memory(const PretrainConfig&);
/// What --dry-run prints about a complete and valid run: the ranks' layout, each model rank's memory, a
/// picture of the pipeline's order, and the samples of the first step. Allocates and writes nothing.
std::string dry_run_text(const PretrainConfig&, const std::vector<ModelRank>&, const DataSets&,
                         const Tokenizer*);

/// The order of a pipeline, one line per rank, in which every forward pass takes one column and every
/// backward pass two:
///   rank 0 | 0 1 .  0--1--
/// "." means waiting. Microbatches are numbered by their last digit, followed by a letter for the chunk
/// ("0a"). Draws at most `columns` columns.
std::string schedule_picture(const ParallelConfig&, const ModelConfig&, int microbatches, int columns = 100);

}  // namespace megalith
