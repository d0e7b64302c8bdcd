#pragma once

#include <chrono>
#include <string>

#include "libcore/json/json.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/communicator.h"
#include "libcore/train/products/step_kinds.h"

/// By which algorithms of cuBLASLt a run computes its products on GPUs. The fastest depends on the GPU, and
/// another one gives other bits, so a run keeps its choice.
namespace megalith {

/// The member of a checkpoint's options that holds the choice.
inline constexpr const char* kProductAlgorithms = "product_algorithms";

/// The run whose products are chosen.
struct ProductRun {
  Communicator& world;
  std::chrono::milliseconds peer_timeout;
  StepKinds& kinds;  // rank 0 asks for them
  /// The options of the checkpoint that the run resumes from, its path, and the file and place of the
  /// options, for messages; null: it resumes none.
  const Json* saved = nullptr;
  std::string path = {}, place = {};
};

/// Lets the backends of all ranks with the same kind of GPU and the same cuBLASLt as rank 0 use the same
/// algorithms: of the checkpoint, if it was saved on the same kind of GPU with the same cuBLASLt; otherwise
/// of a file in cache_folder(); otherwise those that are the fastest on rank 0, which are kept in such a
/// file. Warns in one line if the checkpoint's are not used: bits may then differ. Returns what a checkpoint
/// is to hold; null on the CPU. Collective. Throws kDevice, and kData for a checkpoint that is damaged.
Json choose_products(const ProductRun&, Backend&);

}  // namespace megalith
