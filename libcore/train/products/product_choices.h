#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "libcore/json/json.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/product_choice.h"
#include "libcore/parallel/communicator.h"
#include "libcore/train/step/layout.h"

/// By which algorithms of cuBLASLt a run computes its products on GPUs. The fastest depends on the GPU, and
/// another one gives other bits, so a run keeps its choice.
namespace megalith {

/// The member of a checkpoint's options that holds the choice.
inline constexpr const char* kProductAlgorithms = "product_algorithms";

/// The kinds of products in a step and an evaluation of a run, on all ranks. Where micro-batches may be
/// short, those of the full ones.
std::set<ProductKind> products_of(const RunShape&);
/// A dry backend that has run a step and an evaluation of all ranks of a run.
std::unique_ptr<Backend> dry_run_of(const RunShape&);

/// The run whose products are chosen.
struct ProductRun {
  Communicator& world;
  std::chrono::milliseconds peer_timeout;
  const RunShape& shape;
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
