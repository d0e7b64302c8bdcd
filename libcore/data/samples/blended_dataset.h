#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/shared_array.h"
#include "libcore/data/samples/blend_order.h"
#include "libcore/data/samples/budgets.h"
#include "libcore/data/samples/gpt_dataset.h"

namespace megalith {

/// What --data-path names: prefixes, either all with a weight, all with a budget, or all with neither.
struct Blend {
  std::vector<std::string> prefixes = {};
  std::vector<double> weights = {};  // as the user gave them, all above 0; empty: no weights
  std::vector<Budget> budgets = {};  // open_blend() sets the weights that they mean
};

/// Reads the words of --data-path as Megatron's get_blend_from_list does. An odd number of words is a list of
/// prefixes. An even number is a list of WEIGHT PREFIX pairs if the first word of every pair is a number, and
/// a list of prefixes if no first word is. If a word is a budget, all words are PREFIX BUDGET pairs. A prefix
/// with *, ? or [ that names no dataset stands for all datasets that match it, in the order of their names;
/// with a weight or budget only for one. Throws kUsage if only some first words are numbers, only some
/// prefixes have a budget, or a weight or budget is not above 0; kNoInput if nothing matches.
Blend parse_blend(std::span<const std::string> words);

/// The sum that numpy.sum computes, to the bit: pairwise, with the additions in numpy's order. So normalized
/// weights equal those of numpy.
double numpy_sum(std::span<const double> v);
std::vector<double> normalized(std::span<const double> weights);

/// For each sample of a blend: the dataset that it comes from, and its number in that dataset.
struct BlendIndex {
  SharedArray<int16_t> dataset;
  SharedArray<int64_t> sample;
};

/// The first `size` samples of an order, in memory. Throws Stopped if a StopSignal exists and receives a
/// signal.
BlendIndex blend_in_memory(BlendOrder order, int64_t size);
/// The first `size` samples of BlendOrder::by_weights(weights).
BlendIndex blend_by_weights(std::span<const double> weights, int64_t size);
/// All samples of BlendOrder::exhaustive(sizes).
BlendIndex blend_exhaustively(std::span<const int64_t> sizes);

/// Several GptDatasets of one split, mixed sample by sample.
class BlendedDataset {
 public:
  /// kData if `index` needs more samples of a dataset than that dataset has.
  BlendedDataset(std::vector<GptDataset> datasets, BlendIndex index);

  int64_t size() const { return static_cast<int64_t>(index_.dataset.size()); }
  const BlendIndex& index() const { return index_; }
  const std::vector<GptDataset>& datasets() const { return datasets_; }

  std::vector<int64_t> ids(int64_t sample, int64_t* sequences = nullptr) const;
  void get(int64_t sample, const SampleView& out) const;

 private:
  const GptDataset& source_of(int64_t sample) const;

  std::vector<GptDataset> datasets_;
  BlendIndex index_;
};

}  // namespace megalith
