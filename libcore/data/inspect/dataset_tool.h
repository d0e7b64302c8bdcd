#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/data/inspect/dataset_statistics.h"
#include "libcore/json/json.h"
#include "libcore/text/tokenizer.h"

namespace megalith {

/// What megalith-data says about datasets, which may be of any size, in constant memory: for people (print_…,
/// text) and for programs (…_json).

/// Type, counts, file sizes and the sidecar (null: there is none).
Json dataset_json(const IndexedDataset& data);
/// Min, median, mean, 90 % and 99 % quantiles, max, empty ones, and the histogram.
Json lengths_json(const LengthCounts& lengths);
/// How many different ids there are, and the `frequent` most frequent ones; with a tokenizer also their text.
Json ids_json(const IdCounts& ids, size_t frequent, const Tokenizer* tokenizer);

/// How wide a picture may be.
struct Terminal {
  size_t columns = 80;
};
/// The same as a page of text.
void print_dataset(const IndexedDataset& data, std::ostream& out);
void print_lengths(const LengthCounts& lengths, Terminal terminal, std::ostream& out);
void print_ids(const IdCounts& ids, size_t frequent, const Tokenizer* tokenizer, std::ostream& out);
/// The beginnings of the first documents, one a line: decoded, or as ids without a tokenizer.
void print_beginnings(const IndexedDataset& data, int64_t count, const Tokenizer* tokenizer,
                      Terminal terminal, std::ostream& out);

/// What verify_dataset() could check.
enum class Verified { kContent, kStructure };

/// Checks the structure as IndexedDataset does, and the content of both files by the sidecar's hashes if
/// there are any, with progress. kData with the file that was changed.
Verified verify_dataset(const std::string& prefix);

/// Documents [from, from + count) of a dataset, as far as they exist, one JSON object a line: {"document": 3,
/// "ids": […]}, or with a tokenizer {"document": 3, "text": "…"}.
void print_documents(const IndexedDataset& data, int64_t from, int64_t count, const Tokenizer* tokenizer,
                     std::ostream& out);

}  // namespace megalith
