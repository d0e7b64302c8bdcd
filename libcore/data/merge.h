#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/config/fields.h"

namespace megalith {

/// Joins indexed datasets. Names are those of Megatron's tools/merge_datasets.py.
struct MergeConfig {
  std::vector<std::string> inputs;
  std::string output_prefix;
  bool recursive = false;
  bool multimodal = false;  // represented so that it can be refused by name

  template <class V>
  void fields(V&& v) {
    v("input", inputs,
      "Folder of datasets, joined in the order of their names; or the prefixes of datasets, joined as given.",
      required(), metavar("DIR"));
    v("output-prefix", output_prefix, "Path of the joined dataset, without .bin and .idx.", required(),
      metavar("PREFIX"));
    v("recursive", recursive,
      "Take the datasets of the folders below --input too, in the order of their paths.");
    v("multimodal", multimodal, "Refused: datasets with sequence modes are not supported.", unlisted());
  }
  void validate(Problems&) const;
};

/// Prefixes of the datasets in a folder, ordered by code point as Python sorts (so p10 comes before p2).
/// Every file must be one of a .bin/.idx pair, or the .json of one: kData by name. kNoInput when there is
/// none.
std::vector<std::string> find_datasets(const std::string& folder, bool recursive);

/// What was joined.
struct MergeSummary {
  int64_t datasets = 0, documents = 0, sequences = 0, tokens = 0;
};

/// Writes the joined dataset, atomically; each source is checked as IndexedDataset does. A sidecar is written
/// when every source has one of the same tokenizer. kUsage when the output is one of the sources; kData when
/// token types or tokenizers differ.
MergeSummary merge_datasets(const MergeConfig& config);

}  // namespace megalith
