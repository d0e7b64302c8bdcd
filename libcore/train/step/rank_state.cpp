#include "libcore/train/step/rank_state.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/params_io.h"
#include "libcore/checkpoint/slice.h"

namespace megalith {
namespace {

/// A kind of optimizer tensor: its prefix in a checkpoint, and the function that returns it.
struct Moment {
  const char* name;
  View (Optimizer::*view)(const OwnedPart&) const;
};
constexpr Moment kMoments[] = {{"m.", &Optimizer::m}, {"v.", &Optimizer::v}};
constexpr Moment kMaster = {"master.", &Optimizer::master};

std::vector<Moment> moments_of(const Optimizer& optimizer) {
  std::vector<Moment> moments(std::begin(kMoments), std::end(kMoments));
  if (optimizer.has_masters()) moments.push_back(kMaster);
  return moments;
}

/// A block of a parameter, as a box of the whole tensor and as the elements [first, first + extent) of this
/// rank's flat state.
struct StateBlock {
  Box box;  // position in the whole tensor, with the parameter's name
  Shape extent;
  int64_t first = 0;  // first element, counted within OwnedPart's range
};

/// The blocks of which a range of a parameter consists. Leaves out the padding rows of a vocabulary, which a
/// checkpoint does not hold.
std::vector<StateBlock> state_blocks(const OwnedPart& part) {
  const ParamShare share = share_of(*part.param);
  const Shape& local = part.param->local;
  if (share.extent != local && part.param->shard_axis != 0)
    fail(ErrorKind::kInternal, "parameter ", quote(part.param->name), " is padded on axis ",
         part.param->shard_axis);
  const int64_t row = local.elements() / local[0];
  const int64_t end = std::min(part.first + part.elements, share.extent[0] * row);
  std::vector<StateBlock> blocks;
  int64_t first = 0;
  for (const Overlap& block : blocks_of_range(local, part.first, end)) {
    StateBlock state{.box = share.box, .extent = block.extent, .first = first};
    for (int axis = 0; axis < local.rank; ++axis) state.box.offset[axis] += block.offset[axis];
    first += block.extent.elements();
    blocks.push_back(std::move(state));
  }
  return blocks;
}

Box moment_box(const StateBlock& block, const Moment& moment) {
  Box box = block.box;
  box.name = concat(kOptimizerPrefix, moment.name, block.box.name);
  return box;
}
/// The tensor in a checkpoint from which a moment is read. An fp32 model's checkpoint has no masters, so its
/// values are read instead.
Box saved_box(const TensorFile& file, const StateBlock& block, const Moment& moment) {
  Box box = moment_box(block, moment);
  return moment.view == kMaster.view && !file.find(box.name) ? block.box : box;
}

View moment_view(const Optimizer& optimizer, const OwnedPart& part, const StateBlock& block,
                 const Moment& moment) {
  const int64_t elements = block.extent.elements();
  return (optimizer.*moment.view)(part).rows(block.first, block.first + elements).as_shape(block.extent);
}

/// Whether this rank writes a parameter of which several ranks hold copies. The first tensor rank writes a
/// parameter that all tensor ranks hold whole; the first pipeline stage writes a tied table.
bool writes(const Param& param, const Coord& at) {
  return param.tie.empty() && (param.shard_axis != kWhole || at.tensor == 0);
}

void put_optimizer(CheckpointWriter& writer, const RankState& state) {
  const Optimizer& optimizer = *state.optimizer;
  if (!state.shape.parallel.sharded() && copy_number(state.shape, state.at) > 0) return;
  for (const OwnedPart& part : optimizer.parts()) {
    if (!writes(*part.param, state.at)) continue;
    for (const StateBlock& block : state_blocks(part))
      for (const Moment& moment : moments_of(optimizer))
        writer.put(moment_box(block, moment), moment_view(optimizer, part, block, moment));
  }
}

}  // namespace

void put_state(CheckpointWriter& writer, const RankState& state) {
  if (copy_number(state.shape, state.at) == 0)
    put_params(writer, state.params, tensor_split(state.shape, state.at));
  if (state.optimizer) put_optimizer(writer, state);
}

void load_optimizer(const TensorFile& file, int64_t steps, Optimizer& optimizer, Stream& stream) {
  for (const OwnedPart& part : optimizer.parts())
    for (const StateBlock& block : state_blocks(part))
      for (const Moment& moment : moments_of(optimizer))
        load_box(file, saved_box(file, block, moment), moment_view(optimizer, part, block, moment), stream);
  stream.synchronize();
  optimizer.set_steps(steps);
}

}  // namespace megalith
