#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/data/samples/split_plan.h"
#include "libcore/json/json.h"

namespace megalith {

/// What the descriptions in Megatron's cache of indexes say beside the datasets.
struct CacheTerms {
  std::string split;  // --split as it was given; empty: each split has datasets of its own
  int64_t seed = 1234, seq_length = 0;
  Json tokenizer = {};                       // Tokenizer.unique_identifiers
  const char* dataset_class = "GPTDataset";  // or GPTFIMDataset
};

/// A description and the beginning of the names of the files that belong to it.
struct CacheName {
  std::string description;
  std::string base;  // "d41d8cd9…-GPTDataset-train-"
};

/// Names the files of each dataset of a split, and those of their blend, as megatron-core 0.16.1 and
/// Megatron-LM d98e8a64 do (MegatronDataset and BlendedDataset: the MD5 of a description in JSON).
class CacheNames {
 public:
  /// `prefixes`: the datasets' paths as they were given, by number in OpenBlend.
  CacheNames(const std::vector<std::string>& prefixes, const CacheTerms& terms, const SplitPlan& plan);

  CacheName dataset(size_t number) const;  // a number in SplitPlan::datasets
  CacheName blend() const;                 // only if the plan mixes datasets

 private:
  Json identifiers(size_t number) const;

  const std::vector<std::string>& prefixes_;
  const CacheTerms& terms_;
  const SplitPlan& plan_;
};

}  // namespace megalith
