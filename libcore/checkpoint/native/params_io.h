#pragma once

#include "libcore/checkpoint/native/writer.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/model/params.h"
#include "libcore/tensor/device.h"

namespace megalith {

/// The part of a parameter's tensor that this rank holds. Rows of the value beyond `extent` (a padded
/// vocabulary) are not saved: padding belongs to a layout, and checkpoints have none.
struct ParamShare {
  Box box;  // box.name is the name in checkpoints; tied parameters share it
  Shape extent;
};
ParamShare share_of(const Param& param);

/// kMasters: the fp32 masters of a 16-bit model if the file has them, so that an fp32 run continues at full
/// precision; otherwise the values.
enum class ParamSource { kValues, kMasters };

/// Which parameters are selected, by Param::trainable.
enum class ParamChoice { kAll, kTrained, kFrozen };

/// Fills the value of every selected parameter, if it has a value, from the tensor of the same name (for a
/// tied one, the tensor that it refers to), converting the type; rows beyond the end of the tensor become
/// zero. kData, with the name, if a tensor is missing or has another shape. Returns once the values are
/// there.
void load_params(const TensorFile& file, ParamTable& params, Stream& stream,
                 ParamSource = ParamSource::kValues, ParamChoice = ParamChoice::kAll);

/// Fills `to` with the block of a file's tensor that begins at box.offset and has the shape of `to`,
/// converting the type. Reads a few MiB at a time, since these stay in the cache: a run that loads a model of
/// 124M parameters reached its first step in 0.49 s instead of 0.97. Returns once the values are there, as
/// Stream::from_host() does.
void load_box(const TensorFile& file, const Box& box, View to, Stream& stream);

/// Puts the values of all parameters, without padding, into a checkpoint. Tied parameters are left out, since
/// each is saved under the name of the one that it refers to; so are frozen ones, which have not changed
/// since the run began. A parameter that every rank of the tensor group holds whole is put by rank 0 only. To
/// be called on one data-parallel replica.
void put_params(CheckpointWriter& writer, const ParamTable& params, const TensorSplit& split = {});

}  // namespace megalith
