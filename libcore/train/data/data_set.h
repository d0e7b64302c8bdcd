#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "libcore/data/samples/gpt_dataset.h"

namespace megalith {

/// Writes sample number `index` of a data set to the view, as GptDataset::get and BlendedDataset::get do.
/// Throws when the data set has no sample of that number. Several threads call this at the same time.
using SampleReader = std::function<void(int64_t index, const SampleView&)>;

/// The samples of a data set, and what is known about a sample before it is read. Several threads call these
/// functions at the same time.
struct SampleSource {
  SampleReader read;
  /// Returns the number of rows that a sample fills, at most seq_length. `read` need not write the rows after
  /// them. A micro-batch is as long as its longest sample. If this function is empty, every sample fills
  /// seq_length rows.
  std::function<int64_t(int64_t index)> length = {};
  /// Returns how many of a sample's labels count in the loss. With this function a step's loss is the mean
  /// over all counted labels of the step. Without it, each micro-batch is averaged on its own, and the step's
  /// loss is the mean of these averages.
  std::function<int64_t(int64_t index)> counted = {};
  /// Returns the number of the example that a sample holds, for callers that keep data per example. -1: the
  /// sample is empty and only fills up a step.
  std::function<int64_t(int64_t index)> example = {};

  SampleSource() = default;
  template <class Read>
  // NOLINTNEXTLINE(google-explicit-constructor): the usual kind
  requires std::invocable<const Read&, int64_t, const SampleView&> SampleSource(Read reader)
      : read(std::move(reader)) {}
};

/// One split of the data: train, valid or test. If `size` is 0, the data have no such split.
struct DataSet {
  SampleSource read = {};
  int64_t size = 0;   // number of samples
  int64_t epoch = 0;  // number of samples in an epoch; 0: unknown
  /// If true, every evaluation starts at the first sample. Otherwise it starts where the previous evaluation
  /// ended.
  bool from_the_beginning = false;
  /// If true, every evaluation reads each sample once. `read.counted` must then be set.
  bool whole = false;
};
struct DataSets {
  DataSet train, valid, test;
  std::vector<DataSet> more_valid = {};  // further validation sets, evaluated one by one
  int64_t divided = 0;  // sequences of the smallest dataset that --split divides; 0: it divides none
  /// Bytes that the data hold in the memory of this process as long as the run lasts: the order of samples,
  /// tokens of texts and records. Files that are mapped do not count.
  size_t held = 0;
};

}  // namespace megalith
