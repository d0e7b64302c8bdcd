#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/data/indexed/token_check.h"
#include "libcore/data/samples/dataset_builder.h"

/// The indexed datasets that a run reads, and the samples made of them.
namespace megalith {

/// How a process opens the run's data, which several processes may open.
struct OpenRules {
  WorkCheck check;                // called during long work; throws to end it
  std::string index_folder = {};  // where the order of samples is stored; empty: as own_order() says
  bool scans = true;              // checks every token id; true on one rank per machine
  /// Called before the order is built, with the memory that it takes; throws where that does not fit.
  std::function<void(const IndexMemory&)> check_memory = {};
};

/// The datasets of a run.
struct OpenData {
  std::vector<IndexedDataset> files = {};  // all that the options name, in their order
  TrainingDatasets splits = {};
  std::vector<TrainingDataset> valid_sets = {};  // in place of splits[1], with --multiple-validation-sets
  size_t held = 0;                               // bytes of the orders of samples that are in memory
};

/// Opens the datasets of all splits. `tokenizers` checks their tokenizers against each other. Sets the number
/// of steps in `config` if --num-epochs was given. kUsage, kNoInput, kData.
OpenData open_data(PretrainConfig& config, TokenizerCheck tokenizers, const OpenRules& rules);
/// The order of samples of a run in a process that shares it with no other and has no --data-cache-path. An
/// order of more than 32 MiB is kept in files, which are mapped and have no name any more when the run
/// begins; other orders are kept in memory, and so are those for which the folder for temporary files is not
/// on a disk, or has less than twice the room.
struct OwnOrder {
  size_t bytes = 0;
  bool in_files = false;
};
/// Opens the datasets, but reads no token of them. kUsage, kNoInput, kData.
OwnOrder own_order(PretrainConfig config);

/// The numbers of train, valid and test samples that a run requests; nothing: one epoch. The number of steps
/// must be known.
std::array<std::optional<int64_t>, 3> wanted_samples(const TrainConfig& train);
/// Logs them.
void log_wanted_samples(const TrainConfig& train);

}  // namespace megalith
