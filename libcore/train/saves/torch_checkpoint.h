#pragma once

#include <string>

#include "libcore/train/saves/checkpointing.h"

namespace megalith {

/// save_checkpoint() in Megatron's format "torch": ROOT/iter_NNNNNNN/mp_rank_XX[_YYY]/model_optim_rng.pt, a
/// file for each rank of the model, with the optimizer of all data-parallel ranks gathered; ROOT/tokenizer;
/// then the tracker. Every rank calls it. The ranks write a checkpoint of ours into ROOT/.torch, from which
/// the first one makes Megatron's: there must be room for both.
std::string save_torch_checkpoint(const std::string& root, const TrainState&, Trainer&,
                                  const CheckpointExtras&);

/// Why a run of this layout cannot be saved so; empty: it can.
std::string no_torch_checkpoint(const ModelConfig&, const ParallelConfig&);

}  // namespace megalith
