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

/// The memory of a model's parameters for inference on the CPU: matrices in the type in which they are stored
/// (fp32, bf16, fp16; computed with as fp32, see Project), because a token is bound by the weights' bytes and
/// widening them in registers costs nothing; vectors in fp32. A matrix that stands in a mapped file as the
/// model needs it is used where it stands.
class WeightStore {
 public:
  /// Reads everything; kData names a tensor that is missing or has another shape.
  WeightStore(const TensorFile&, ParamTable&, Stream&, const WeightOptions& = {});

  int64_t bytes() const { return bytes_; }    // of all values
  int64_t mapped() const { return mapped_; }  // of those that are used in the file

 private:
  struct Stored {
    View view;
    std::optional<Arena> own = {};  // of a copy that is only passing
  };
  Stored stored(const TensorFile&, const Param&, Stream&, bool passing);
  void quantize(Param&, View wide, Stream&);
  View make(Stream&, DType, const Shape&, const std::string& name);

  int64_t bytes_ = 0, mapped_ = 0;
  std::vector<Arena> arenas_;
};

}  // namespace megalith
