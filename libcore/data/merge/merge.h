#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/options/fields.h"

namespace megalith {

/// Options of merge_datasets() and merge_shards(). Names are those of Megatron's tools/merge_datasets.py.
struct MergeConfig {
  std::vector<std::string> inputs;
  std::string shards = {}, rejects = {};
  std::string output_prefix;
  bool recursive = false;
  bool natural_sort = false;
  bool widen = false;
  bool verify = false;
  int jobs = 1;
  bool sidecars_needed = false;  // not an option: a sidecar that does not describe its dataset is an error

  template <class V>
  void fields(V&& v) {
    v("input", inputs,
      "Folder of datasets, joined in the order of their names; or the prefixes of datasets, joined as given.",
      metavar("DIR"));
    v("output-prefix", output_prefix,
      "Path of the joined dataset, without .bin and .idx. With --shards: of the datasets, as for "
      "megalith-preprocess (PREFIX_KEY_document).",
      required(), metavar("PREFIX"));
    v("shards", shards,
      "In place of --input: join the shards that megalith-preprocess --shard wrote with this "
      "--output-prefix, each of their datasets, in order. A shard that is missing, there twice or of another "
      "run is refused.",
      metavar("PREFIX"));
    v("rejects", rejects,
      "With --shards: also join the lines that the shards rejected. Give the --rejects of "
      "megalith-preprocess; the joined file gets this name.",
      metavar("FILE"));
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
    v("jobs", jobs, "Threads that copy the tokens, each its own part of the file.", at_least(1));
  }
  void validate(Problems&) const;
};

/// The order in which find_datasets() returns prefixes.
enum class PrefixOrder {
  kCodePoint,  // by code points, as Python sorts: p10 before p2
  kNatural,    // runs of digits as numbers: p2 before p10
};

/// The prefixes of the datasets in a folder. Throws kData, naming the file, if a file in the folder neither
/// belongs to a .bin/.idx pair nor is the .json of one; kNoInput if there is no pair.
std::vector<std::string> find_datasets(const std::string& folder, bool recursive, PrefixOrder order);

/// The counts of the joined dataset.
struct MergeSummary {
  int64_t datasets = 0, documents = 0, sequences = 0, tokens = 0;
};

/// Joins the datasets of config.inputs, atomically and in constant memory. The arrays of each source's .idx
/// are checked while they are read, as IndexedDataset does. The bytes of a .bin are copied inside the
/// operating system's kernel, unless they are widened or verified. A sidecar is written if every source has
/// one and they name the same tokenizer. It takes over the hashes of content that is copied unchanged, so
/// that damage to a source can still be found later. kUsage if the output is one of the sources; kData if
/// token types or tokenizers differ.
MergeSummary merge_datasets(const MergeConfig& config);

}  // namespace megalith
