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

/// The output of megalith-data: for people as text (print_…) and for programs as JSON (…_json). Memory is
/// constant, whatever the size of the dataset.

/// Token type, counts, file sizes and the sidecar (null if there is none).
Json dataset_json(const IndexedDataset& data);
/// Minimum, median, mean, 90 % and 99 % quantiles and maximum of the lengths, the number of empty documents,
/// and a histogram.
Json lengths_json(const LengthCounts& lengths);
/// The number of different ids, and the `frequent` most frequent ids, with their text if there is a tokenizer
/// (not null).
Json ids_json(const IdCounts& ids, size_t frequent, const Tokenizer* tokenizer);

/// How wide the output may be.
struct Terminal {
  size_t columns = 80;
};
/// print_dataset(), print_lengths() and print_ids() print as text what the …_json functions return.
void print_dataset(const IndexedDataset& data, std::ostream& out);
void print_lengths(const LengthCounts& lengths, Terminal terminal, std::ostream& out);
void print_ids(const IdCounts& ids, size_t frequent, const Tokenizer* tokenizer, std::ostream& out);
/// Prints the beginnings of the first `count` documents, one a line: as text, or as ids if `tokenizer` is
/// null.
void print_beginnings(const IndexedDataset& data, int64_t count, const Tokenizer* tokenizer,
                      Terminal terminal, std::ostream& out);

/// What verify_dataset() could check: the content if the sidecar has hashes, otherwise only the structure.
enum class Verified { kContent, kStructure };

/// Checks the structure as IndexedDataset does. If the sidecar has hashes, also checks the content of both
/// files against them. Shows progress. Throws kData, naming the file, if a file is damaged or was changed.
Verified verify_dataset(const std::string& prefix);

/// Prints documents [from, from + count), as far as they exist, one JSON object a line: {"document": 3,
/// "ids": […]} if `tokenizer` is null, otherwise {"document": 3, "text": "…"}.
void print_documents(const IndexedDataset& data, int64_t from, int64_t count, const Tokenizer* tokenizer,
                     std::ostream& out);

}  // namespace megalith
