#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/config/data_config.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/json/json.h"
#include "libcore/launch/rank_place.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// What a rank reads, to be compared with what the others read.
struct RunData {
  std::vector<const IndexedDataset*> datasets;
  std::array<int64_t, 3> samples = {};  // number of samples of each split
  std::string texts = {};               // hash of the token ids of the run's texts; empty: it reads no texts
  std::string tokenizer = {};           // the tokenizer's hash; empty: there is no tokenizer
};

/// Compares what all ranks read; paths may differ between machines, contents must not. Collective. Compares
/// for each dataset its size, the hash of its .idx, the hashes of the .bin in its sidecar (if both ranks have
/// a sidecar), and sampled blocks of the .bin: kSampledBlocks at places that rank 0 draws anew in each run,
/// or all blocks of a smaller .bin. If ranks of one machine open the same file, only one of them reads it.
/// Throws kData with the rank and the file.
void require_same_data(Communicator& world, const std::vector<RankPlace>& places,
                       std::chrono::milliseconds peer_timeout, const RunData&);

/// Digests of the contents of the datasets that the options name, in their order, as texts of a JSON array;
/// null if they name none, or texts. A digest covers the sizes of .bin and .idx and sampled blocks of both,
/// at places that depend on the sizes only. Checkpoints keep them, so that a resumed run can tell that its
/// data changed.
Json data_digests(const DataConfig&);

/// Member of a checkpoint's args: data_digests() of the run that saved it.
inline constexpr const char* kDataDigests = "data_digests";

constexpr uint64_t kSampledBlocks = 64, kSampledBlock = 4096;

}  // namespace megalith
