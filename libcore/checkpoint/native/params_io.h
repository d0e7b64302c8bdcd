#pragma once

#include "libcore/checkpoint/native/writer.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/model/params.h"
#include "libcore/tensor/device.h"

namespace megalith {

/// The part of a parameter's tensor that this rank holds. Rows of the value beyond `extent` (a padded
/// vocabulary) are not saved, because padding belongs to a layout and a checkpoint to none.
struct ParamShare {
  Box box;  // under the name that a tied parameter is saved by
  Shape extent;
};
ParamShare share_of(const Param& param);

/// kMasters: the fp32 masters of a 16-bit model, where the file has them, so that a run in fp32 goes on from
/// what the other one really knew.
enum class ParamSource { kValues, kMasters };

/// Which parameters are meant, by Param::trainable.
enum class ParamChoice { kAll, kTrained, kFrozen };

/// Fills the value of every placed parameter of the choice from the tensors of the same names (a tied one
/// from the tensor that it names), converting the type; rows beyond the tensor become zero. kData names a
/// tensor that is missing or has another shape. Returns when the values are there.
void load_params(const TensorFile& file, ParamTable& params, Stream& stream,
                 ParamSource = ParamSource::kValues, ParamChoice = ParamChoice::kAll);

/// Fills `to` with the box of a file's tensor that has its shape, converting the type; a few MiB at a time,
/// because these stay in the cache: a loaded run of 124M parameters came to its first step in 0.49 s instead
/// of 0.97. Returns when the values are there, as Stream::from_host() does.
void load_box(const TensorFile& file, const Box& box, View to, Stream& stream);

/// Puts every parameter's value: tied ones under the name they share, so not again; padding not at all, nor
/// frozen ones, which are still what the run began with. Of parameters that the tensor group holds whole,
/// rank 0's; the caller calls this on one data-parallel replica.
void put_params(CheckpointWriter& writer, const ParamTable& params, const TensorSplit& split = {});

}  // namespace megalith
