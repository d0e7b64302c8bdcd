#include "libcore/data/indexed/indexed_dataset.h"

#include <filesystem>
#include <string>

#include "tests/fuzz/fuzz.h"

/// Reads PREFIX.idx beside a PREFIX.bin of 64 bytes: each sequence and each document.
MEGALITH_FUZZ_TARGET(indexed_dataset) {
  using namespace megalith;
  const std::filesystem::path idx = fuzz::file_of(bytes, "indexed_dataset/set.idx");
  fuzz::file_of(std::string(64, '\0'), "indexed_dataset/set.bin");
  const IndexedDataset dataset((idx.parent_path() / "set").string());
  for (int64_t i = 0; i < dataset.sequences(); ++i) dataset.sequence_length(i);
  for (int64_t i = 0; i <= dataset.documents(); ++i) dataset.document_begin(i);
}
