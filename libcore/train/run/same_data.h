#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/launch/rank_place.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// What a rank reads, to be compared with what the others read.
struct RunData {
  std::vector<const IndexedDataset*> datasets;
  std::array<int64_t, 3> samples = {};  // of each split
  std::string texts = {};               // hash of the ids of texts; empty: there are none
  std::string tokenizer = {};           // its hash; empty: there is none
};

/// Compares what all ranks read; paths may differ between machines, contents must not. Collective. For each
/// dataset: its size, the hash of its .idx, the hashes of the .bin that its sidecar states, if both ranks
/// have one, and kSampledBlocks of the .bin whose places rank 0 draws anew in each run (all of a .bin that is
/// not larger). Of the ranks of one machine that open the same file, one reads it. kData with the rank and
/// the file.
void require_same_data(Communicator& world, const std::vector<RankPlace>& places,
                       std::chrono::milliseconds peer_timeout, const RunData&);

constexpr uint64_t kSampledBlocks = 64, kSampledBlock = 4096;

}  // namespace megalith
