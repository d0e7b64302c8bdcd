#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/train/saves/checkpointing.h"
#include "libcore/train/saves/start_point.h"

namespace megalith {

/// Checkpoints as the PyTorch DDP tutorial keeps them: ROOT/model_NNNNNN.pth, a dict of the parameters under
/// our names, and ROOT/optimizer_NNNNNN.pth, what torch.optim.AdamW.state_dict() holds (matrices in the first
/// group, vectors, which do not decay, in the second) with one key more, "megalith": where the run stood, as
/// JSON. NNNNNN is the number of the run's last step, counted from 0. torch.load(weights_only=True) reads
/// both. Saved by way of our own format: the same numbers for every layout.

/// Writes the pair, the optimizer first; called by every rank. Returns the model's path.
std::string save_pth_checkpoint(const std::string& root, const TrainState&, Trainer&,
                                const CheckpointExtras&);

/// The number of the newest pair below `root`; nothing when there is none.
std::optional<int64_t> newest_pth(const std::string& root);

/// The pair of this number, to go on from bit for bit. A model file alone (or one that torch wrote, if it has
/// our names) is weights alone. kNoInput with the numbers that there are; kData.
StartPoint pth_start(const std::string& root, int64_t number);

/// kNoInput when `start` is a .pth model without its optimizer that lies in `save`: the run begins at step 0
/// then, and its pairs would take the place of those that are there. No effect on other start points.
void require_other_pairs(const StartPoint& start, const std::string& save);

/// Puts what `start` says of the schedule and of the place in the data in terms of this run's batch, with as
/// many steps, because the tutorial counts in steps, and another number of ranks has another global batch:
/// the run goes on as if those steps had been its own. `epoch`: samples of one time through the data, 0: not
/// known; a decay over the same epochs is over all of this run's steps. No effect on start points that are no
/// .pth pair.
void count_in_steps(StartPoint& start, const TrainConfig&, int64_t epoch);

}  // namespace megalith
