#pragma once

#include "libcore/checkpoint/native/writer.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/model/params.h"
#include "libcore/tensor/device.h"

namespace megalith {

/// The part of a parameter's tensor that this rank holds. Rows of the value beyond `extent` are padding of
/// the vocabulary. They are not saved, since padding depends on the layout and a checkpoint does not.
struct ParamShare {
  Box box;  // box.name is the name in checkpoints; tied parameters share it
  Shape extent;
};
ParamShare share_of(const Param& param);

/// What load_params() reads. kValues: the parameters' values. kMasters: the fp32 masters of a 16-bit model,
/// so that an fp32 run continues at full precision; the values if the file has no masters.
enum class ParamSource { kValues, kMasters };

/// Which parameters load_params() fills, by Param::trainable.
enum class ParamChoice { kAll, kTrained, kFrozen };

/// Fills the value of every selected parameter that has one from the tensor of the same name, converting the
/// type. A tied parameter is filled from the tensor that it refers to. Rows beyond the end of the tensor
/// become zero. Throws kData, with the name, if a tensor is missing or has another shape. Returns once the
/// values are complete.
void load_params(const TensorFile& file, ParamTable& params, Stream& stream,
                 ParamSource = ParamSource::kValues, ParamChoice = ParamChoice::kAll);

/// Fills `to` with a block of a tensor in a file, converting the type. The block begins at box.offset and has
/// the shape of `to`. It is read a few MiB at a time, which stay in the cache: a run that loads a model of
/// 124M parameters reached its first step in 0.49 s instead of 0.97. Later work of the
/// stream finds the values there, as after Stream::from_host().
void load_box(const TensorFile& file, const Box& box, View to, Stream& stream);

/// Puts the values of the parameters, without padding, into a checkpoint. Two kinds are left out: tied
/// parameters, each of which is saved under the name of the one that it refers to, and frozen ones, which
/// have not changed since the run began. A parameter that every rank of the tensor group holds whole is put
/// by rank 0 only. To be called on one data-parallel replica.
void put_params(CheckpointWriter& writer, const ParamTable& params, const TensorSplit& split = {});

}  // namespace megalith
