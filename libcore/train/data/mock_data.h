#pragma once

#include <array>
#include <cstdint>

#include "libcore/train/data/data_set.h"

namespace megalith {

/// Data sets for --mock-data, in the manner of Megatron's MockGPTDataset: documents 1, 2, 3, … of 1 to 4096
/// tokens, each ended by `eod`. The seed and the sample's number determine the lengths. Ids beyond the
/// vocabulary start again at 1. `samples`: the numbers of train, valid and test samples.
DataSets mock_data(int64_t vocab_size, int32_t eod, uint32_t seed, const std::array<int64_t, 3>& samples);

}  // namespace megalith
