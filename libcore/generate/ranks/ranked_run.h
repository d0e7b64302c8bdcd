#pragma once

#include <optional>
#include <span>

#include "libcore/generate/run_generate.h"
#include "libcore/options/cli.h"
#include "libcore/train/run/pretrain.h"

namespace megalith {

/// Options of training's layouts that generation has no use for, and what to do in place of them. Prompts are
/// divided over data-parallel ranks, matrices over tensor-parallel ones.
std::span<const WithdrawnOption> only_for_training_ranks();

/// Reports what several ranks cannot do.
void check_ranked(const GenerateConfig&, const ParallelConfig&, Problems&);

/// Runs megalith-generate in the ranks of `parallel`, which must be complete: as the rank of this process, or
/// as all of them, each a thread. `thread_log`: as in train().
/// Throws what as_rank(), open_rank_device() and run_generate() throw, and ReaderGone once all ranks have
/// ended if nobody reads the texts.
void generate_in_ranks(const GenerateConfig&, const ParallelConfig& parallel,
                       const std::optional<LaunchedRank>& rank, const ThreadLog& thread_log);

}  // namespace megalith
