#pragma once

#include <optional>
#include <vector>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/model/params.h"
#include "libcore/tensor/arena.h"
#include "libcore/tensor/device.h"

namespace megalith {

struct WeightOptions {
  bool int8 = false;  // linear layers and the head in 8 bits (see Project)
};

/// The memory of a model's parameters for inference on the CPU. Matrices keep the type in which they are
/// stored (fp32, bf16, fp16) and are computed with as fp32 (see Project): the bytes of the weights determine
/// the time of a token, and widening them in registers costs nothing. Vectors are fp32. A matrix that a
/// mapped file holds in the form that the model needs is used in place.
class WeightStore {
 public:
  /// Reads everything; kData, naming the tensor, if one is missing or has another shape.
  WeightStore(const TensorFile&, ParamTable&, Stream&, const WeightOptions& = {});

  int64_t bytes() const { return bytes_; }    // bytes of all values
  int64_t mapped() const { return mapped_; }  // bytes of the values that are used in place, in the file

 private:
  struct Stored {
    View view;
    std::optional<Arena> own = {};  // for a copy that is needed only briefly
  };
  Stored stored(const TensorFile&, const Param&, Stream&, bool passing);
  void quantize(Param&, View wide, Stream&);
  View make(Stream&, DType, const Shape&, const std::string& name);

  int64_t bytes_ = 0, mapped_ = 0;
  std::vector<Arena> arenas_;
};

}  // namespace megalith
