#pragma once

#include <chrono>
#include <span>
#include <string>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/parallel/communicator.h"
#include "libcore/train/saves/start_point.h"

namespace megalith {

/// Something that a run begins with: a checkpoint, the model that is tuned, its adapter.
struct Origin {
  std::string option;                 // the one that names it
  const TensorFile* tensors;          // null: the run begins without it
  const StartPoint* start = nullptr;  // of a checkpoint: what is known besides the tensors
};

/// Compares what all ranks begin with. Paths may differ between machines, contents must not; of large
/// tensors, values are compared at places that rank 0 draws anew in each run (see tensor_digest()).
/// Collective: all ranks give equally many origins. Throws kData with the rank, the option and the path.
void require_same_start(Communicator& world, std::chrono::milliseconds peer_timeout,
                        std::span<const Origin> origins);

}  // namespace megalith
