#pragma once

#include <array>
#include <cstdint>

#include "libcore/train/data/data_set.h"

namespace megalith {

/// Data sets for --mock-data, modelled on Megatron's MockGPTDataset. A document has 1 to 4096 tokens: the ids
/// 1, 2, 3, … and then `eod`. After the largest id of the vocabulary the ids start again at 1. The seed and
/// the sample's number determine the lengths. `samples`: the numbers of train, valid and test samples.
DataSets mock_data(int64_t vocab_size, int32_t eod, uint32_t seed, const std::array<int64_t, 3>& samples);

}  // namespace megalith
