#pragma once

#include <optional>

#include "libcore/config/pretrain_config.h"
#include "libcore/model/params.h"
#include "libcore/train/ranks/rank_device.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/saves/start_point.h"
#include "libcore/train/step/layout.h"
#include "libcore/train/step/trainer.h"
#include "libcore/train/tasks/run_tasks.h"

/// The start of a run, before its first step. Every rank calls these functions.
namespace megalith {

/// Finds the checkpoint that --load names, the same one on all ranks, and checks that it fits this run's
/// model and that all ranks begin with the same values. A resumed run gets its seed from the checkpoint.
std::optional<StartPoint> find_run_start(const RankInput&, PretrainConfig& config);
/// Whether the run continues the run that saved `start`. If not, it uses only the weights.
bool resumes(const CheckpointConfig&, const StartPoint& start);

/// The run's shape. The first rank checks the memory of its machine for all, so that all reach the same
/// decision, and logs the number of parameters. kUsage when the memory is too small.
RunShape agreed_shape(const RankInput&, const PretrainConfig&, const RankDevice&, const RunTasks&);

/// Sets the initial values of all parameters: random ones, or those of Tuning::base. A run that trains only a
/// part of the model reads the base even with a start point, because a checkpoint holds only the trained
/// part.
void take_base_values(const RankInput&, Trainer&, bool has_start);
/// Makes the trainer learn preferences. Must be called before the adapters get values: until then the model
/// is the reference. `state`: from which the run begins; of the examples that it does not reach from there,
/// no log probability is computed.
void learn_preferences(const RankInput&, const PretrainConfig&, const TrainState& state, Trainer&);
/// Sets the initial values of the adapters in a run without a start point.
void take_adapters(const Tuning&, Trainer&);
/// Sets the trained parameters to the values of a start point.
void take_start_values(const StartPoint&, Trainer&, bool resumed);
/// Sets the optimizer's moments and the loss scale of a resumed run. Returns the schedule to continue with;
/// see agreed_schedule(). kData when the checkpoint holds no moments and does not say why.
LrSchedule take_optimizer_state(const StartPoint&, const CheckpointConfig&, const LrSchedule& ours, Trainer&);

/// kUsage when a batch of --step-batch-size-schedule that a step or an evaluation of this run takes cannot be
/// divided among its ranks.
void require_whole_batches(const PretrainConfig&, const DataSets&, const TrainState&);

/// kUsage when the data have fewer training samples than the remaining steps need.
void require_enough_data(const RankInput&, const TrainState&);

}  // namespace megalith
