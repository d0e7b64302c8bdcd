#pragma once

#include <cstdint>

#include "libcore/checkpoint/native/writer.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/model/params.h"
#include "libcore/parallel/topology.h"
#include "libcore/train/step/layout.h"
#include "libcore/train/step/optimizer.h"

namespace megalith {

/// What a rank holds of a run's parameters and of its optimizer's state.
struct RankState {
  const ParamTable& params;
  const Optimizer* optimizer;  // null: not saved
  const RunShape& shape;
  const Coord& at;
};
/// Puts this rank's part of a checkpoint into the writer. Data that several ranks hold are written by one of
/// them.
void put_state(CheckpointWriter&, const RankState&);

/// Reads the optimizer's moments and masters ("optim.m.NAME" and so on) and sets its number of updates to
/// `steps`. kData when any are missing.
void load_optimizer(const TensorFile&, int64_t steps, Optimizer&, Stream&);

}  // namespace megalith
