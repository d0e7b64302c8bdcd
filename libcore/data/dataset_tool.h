#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "libcore/base/json.h"
#include "libcore/data/indexed_dataset.h"
#include "libcore/text/tokenizer.h"

namespace megalith {

/// What megalith-data tells of datasets.

/// Type, counts, file sizes and the sidecar (null: none).
Json describe_dataset(const std::string& prefix);

/// What verify_dataset() could check.
enum class Verified { kContent, kStructure };

/// Checks the structure as IndexedDataset does, and the content of both files by the hashes in the sidecar
/// where there are some, with progress. kData names the file that is not as it was written.
Verified verify_dataset(const std::string& prefix);

/// Documents [from, from + count) of a dataset (as far as there are), one JSON object a line: {"document": 3,
/// "ids": […]}, or with a tokenizer {"document": 3, "text": "…"}.
void print_documents(const IndexedDataset& data, int64_t from, int64_t count, const Tokenizer* tokenizer,
                     std::ostream& out);

/// Lengths of documents (least, median, mean, greatest; how many are empty) and how often ids occur (the
/// `frequent` most frequent ones; of ids below 2^24). Reads everything, with progress.
Json dataset_statistics(const IndexedDataset& data, size_t frequent);

}  // namespace megalith
