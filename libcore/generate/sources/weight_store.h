#pragma once

#include <optional>
#include <vector>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/model/params.h"
#include "libcore/tensor/arena.h"
#include "libcore/tensor/device.h"

namespace megalith {

struct WeightOptions {
  /// Keeps linear layers and the head in 8 bits (see Project). Not for parts of rows, whose scales would not
  /// be those of the rows.
  bool int8 = false;
};

/// The memory of a model's parameters for inference on the CPU. Matrices keep the type in which they are
/// stored (fp32, bf16, fp16) and are multiplied as fp32 (see Project): the time of a token depends on the
/// bytes of the weights, while widening them in registers costs nothing. Vectors are converted to fp32. If a
/// mapped file holds a matrix in the form that the model needs, the matrix is used in place. If ranks share
/// the matrices, it holds this rank's parts.
class WeightStore {
 public:
  /// Reads all parameters. kData, with the tensor's name, if a tensor is missing or has another shape.
  WeightStore(const TensorFile&, ParamTable&, Stream&, const WeightOptions& = {});

  int64_t bytes() const { return bytes_; }    // bytes of all values
  int64_t mapped() const { return mapped_; }  // bytes of the values that are used in place, in the file

 private:
  struct Stored {
    View view;
    std::optional<Arena> own = {};  // memory of a copy that is needed only briefly
  };
  Stored stored(const TensorFile&, const Param&, Stream&, bool passing);
  void quantize(Param&, View wide, Stream&);
  View make(Stream&, DType, const Shape&, const std::string& name);

  int64_t bytes_ = 0, mapped_ = 0;
  std::vector<Arena> arenas_;
};

}  // namespace megalith
