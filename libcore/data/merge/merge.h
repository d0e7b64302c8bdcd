#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/options/fields.h"

namespace megalith {

/// Joins indexed datasets. Names are those of Megatron's tools/merge_datasets.py.
struct MergeConfig {
  std::vector<std::string> inputs;
  std::string output_prefix;
  bool recursive = false;
  bool natural_sort = false;
  bool widen = false;
  bool verify = false;
  bool multimodal = false;  // known only so that it can be rejected with its name

  template <class V>
  void fields(V&& v) {
    v("input", inputs,
      "Folder of datasets, joined in the order of their names; or the prefixes of datasets, joined as given.",
      required(), metavar("DIR"));
    v("output-prefix", output_prefix, "Path of the joined dataset, without .bin and .idx.", required(),
      metavar("PREFIX"));
    v("recursive", recursive,
      "Also take the datasets in folders below --input, in the order of their paths.");
    v("natural-sort", natural_sort,
      "Order the datasets of a folder by the numbers in their names: part_2 before part_10.");
    v("widen", widen,
      "Join datasets of different integer types, using the smallest type that holds all (int32 for uint16 "
      "and int32). Where sidecars name the tokenizers, these must still be the same.");
    v("verify", verify,
      "Compare the content of each dataset with the hashes in its sidecar, which must exist. Structure "
      "and sizes are always checked.");
    v("multimodal", multimodal, "Refused: datasets with sequence modes are not supported.", unlisted());
  }
  void validate(Problems&) const;
};

/// How find_datasets() orders prefixes.
enum class PrefixOrder {
  kCodePoint,  // as Python sorts: p10 before p2
  kNatural,    // runs of digits by their number: p2 before p10
};

/// Prefixes of the datasets in a folder. Every file must be one of a .bin/.idx pair, or the .json of one:
/// kData by name. kNoInput when there is none.
std::vector<std::string> find_datasets(const std::string& folder, bool recursive, PrefixOrder order);

/// What was joined.
struct MergeSummary {
  int64_t datasets = 0, documents = 0, sequences = 0, tokens = 0;
};

/// Writes the joined dataset, atomically, in constant memory: the arrays of each source's .idx are checked as
/// IndexedDataset does while they stream by; .bin bytes are copied by the kernel unless they are widened or
/// verified. A sidecar is written when every source has one of the same tokenizer; the hashes of content that
/// was not changed are carried over, so that damage done to a source after it was written is found even
/// later. kUsage when the output is one of the sources; kData when token types or tokenizers differ.
MergeSummary merge_datasets(const MergeConfig& config);

}  // namespace megalith
