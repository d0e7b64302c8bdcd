#pragma once

#include "libcore/checkpoint/native/writer.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/model/params.h"
#include "libcore/tensor/device.h"

namespace megalith {

/// The part of a parameter's tensor that this rank holds. Rows of the value beyond `extent` (a padded
/// vocabulary) are not saved: padding belongs to a layout, and checkpoints have none.
struct ParamShare {
  Box box;  // with the name under which a tied parameter is saved
  Shape extent;
};
ParamShare share_of(const Param& param);

/// kMasters: the fp32 masters of a 16-bit model, if the file has them, so that an fp32 run continues from the
/// full precision.
enum class ParamSource { kValues, kMasters };

/// Which parameters are selected, by Param::trainable.
enum class ParamChoice { kAll, kTrained, kFrozen };

/// Fills the value of every selected and placed parameter from the tensor of the same name (for a tied one,
/// the tensor that it refers to), converting the type; rows beyond the tensor become zero. kData if a tensor
/// is missing or has another shape, with its name. Returns once the values are there.
void load_params(const TensorFile& file, ParamTable& params, Stream& stream,
                 ParamSource = ParamSource::kValues, ParamChoice = ParamChoice::kAll);

/// Fills `to` with the box of a file's tensor that has its shape, converting the type. Reads a few MiB at a
/// time, since these stay in the cache: loading a model of 124M parameters, a run reached its first step in
/// 0.49 s instead of 0.97. Returns once the values are there, as Stream::from_host() does.
void load_box(const TensorFile& file, const Box& box, View to, Stream& stream);

/// Puts every parameter's value, except tied ones (they are saved under the name that they share), padding,
/// and frozen ones, which are unchanged since the run began. Of a parameter that every rank of the tensor
/// group holds whole, rank 0 puts it. To be called on one data-parallel replica.
void put_params(CheckpointWriter& writer, const ParamTable& params, const TensorSplit& split = {});

}  // namespace megalith
