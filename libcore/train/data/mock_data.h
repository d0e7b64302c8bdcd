#pragma once

#include <array>
#include <cstdint>

#include "libcore/train/data/data_set.h"

namespace megalith {

/// Data sets for --mock-data, in the manner of Megatron's MockGPTDataset: documents 1, 2, 3, … of 1 to 4096
/// tokens, each ended by `eod`, of lengths that follow from the seed and the sample's number. Ids beyond the
/// vocabulary begin anew at 1. `samples` of train, valid and test.
DataSets mock_data(int64_t vocab_size, int32_t eod, uint32_t seed, const std::array<int64_t, 3>& samples);

}  // namespace megalith
