#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/shared_array.h"
#include "libcore/data/samples/gpt_dataset.h"

namespace megalith {

/// The words of --data-path: prefixes, each with a weight or all without.
struct Blend {
  std::vector<std::string> prefixes;
  std::vector<double> weights;  // as the user gave them, all above 0; empty: no weights
};

/// As Megatron's get_blend_from_list: an odd number of words is prefixes only; an even number is WEIGHT
/// PREFIX pairs if every first word is a number, prefixes if none is. kUsage if only some first words are
/// numbers, or if a weight is not above 0.
Blend parse_blend(std::span<const std::string> words);

/// numpy.sum of doubles: pairwise, in numpy's order of additions, so that normalized weights have numpy's
/// bits.
double numpy_sum(std::span<const double> v);
std::vector<double> normalized(std::span<const double> weights);

/// For each sample of a blend: the dataset that it comes from, and its number in that dataset.
struct BlendIndex {
  SharedArray<int16_t> dataset;
  SharedArray<int64_t> sample;
};

/// Each sample is taken from the dataset that is furthest behind its share (the first of equal ones), so that
/// every beginning of the blend is mixed by weight (Megatron's helpers.cpp, build_blending_indices).
/// `weights` must add up to 1.
BlendIndex blend_by_weights(std::span<const double> weights, int64_t size);

/// As blend_by_weights(), with each dataset's size as its weight, until every sample of every dataset has
/// been taken once (Megatron's build_exhaustive_blending_indices).
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
