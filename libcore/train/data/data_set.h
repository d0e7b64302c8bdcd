#pragma once

#include <cstdint>
#include <functional>

#include "libcore/data/samples/gpt_dataset.h"

namespace megalith {

/// Writes sample number `index` of a data set (GptDataset::get, BlendedDataset::get); throws when there is
/// none of that number. Called from several threads at a time.
using SampleReader = std::function<void(int64_t index, const SampleView&)>;

/// One split. Empty (size 0): there is none.
struct DataSet {
  SampleReader read = {};
  int64_t size = 0;                 // samples
  int64_t epoch = 0;                // samples of one time through the data; 0: not known
  bool from_the_beginning = false;  // each evaluation reads its first samples, not the next ones
};
struct DataSets {
  DataSet train, valid, test;
};

}  // namespace megalith
