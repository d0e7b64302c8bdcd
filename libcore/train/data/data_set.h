#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <utility>

#include "libcore/data/samples/gpt_dataset.h"

namespace megalith {

/// Writes sample number `index` of a data set (GptDataset::get, BlendedDataset::get); throws when no sample
/// has that number. Called from several threads at a time.
using SampleReader = std::function<void(int64_t index, const SampleView&)>;

/// The samples of a data set, and what is known about each before it is read. Functions are called from
/// several threads at a time.
struct SampleSource {
  SampleReader read;
  /// Number of rows that a sample fills, at most seq_length; the reader need not write the others. A
  /// micro-batch is as long as its longest sample. Empty: every sample is full.
  std::function<int64_t(int64_t index)> length = {};
  /// Number of a sample's labels that count in the loss. If given, a step's loss is the mean over all of its
  /// counted labels; otherwise the mean over its micro-batches of each one's mean.
  std::function<int64_t(int64_t index)> counted = {};
  /// Which example a sample is, for callers that know something about each example; -1: an empty sample that
  /// fills up a step.
  std::function<int64_t(int64_t index)> example = {};

  SampleSource() = default;
  template <class Read>
  // NOLINTNEXTLINE(google-explicit-constructor): the usual kind
  requires std::invocable<const Read&, int64_t, const SampleView&> SampleSource(Read reader)
      : read(std::move(reader)) {}
};

/// One split of the data. Size 0: there is no such split.
struct DataSet {
  SampleSource read = {};
  int64_t size = 0;   // samples
  int64_t epoch = 0;  // samples of an epoch; 0: unknown
  /// Every evaluation starts at the first sample again, instead of where the previous one ended.
  bool from_the_beginning = false;
};
struct DataSets {
  DataSet train, valid, test;
};

}  // namespace megalith
