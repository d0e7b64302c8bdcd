#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "libcore/data/indexed/indexed_format.h"

namespace megalith {

/// The first 34 bytes of an .idx, and where its arrays begin.
struct IndexHeader {
  IndexedDType dtype{};
  int64_t sequences = 0, entries = 0;  // entries of the document array = documents + 1

  uint64_t lengths_at() const { return kIndexedHeaderBytes; }
  uint64_t pointers_at() const { return lengths_at() + 4 * static_cast<uint64_t>(sequences); }
  uint64_t documents_at() const { return pointers_at() + 8 * static_cast<uint64_t>(sequences); }
  uint64_t file_size() const { return documents_at() + 8 * static_cast<uint64_t>(entries); }
};

/// Returns `prefix` if both its files exist. kNoInput, with the missing one.
std::string existing_dataset(std::string prefix);

/// The header of an .idx of `file_size` bytes: checks magic, version, type, and the counts against the size.
/// `head` holds the first min(34, file_size) bytes. kData, with the file `path`.
IndexHeader read_index_header(std::span<const std::byte> head, uint64_t file_size, const std::string& path);

/// Checks the arrays of an .idx as they are read, from front to back, in blocks of any size: lengths >= 0,
/// pointers = sums of the lengths before, documents from 0 to S in order, the .bin's size. Each failure is
/// kData with file and place. The arrays may begin at any byte.
class IndexChecker {
 public:
  IndexChecker(const std::string& prefix, const IndexHeader& header, uint64_t bin_size);

  void sequences(const std::byte* lengths, const std::byte* pointers, int64_t n);  // the next n
  void end_of_sequences() const;
  void documents(const std::byte* boundaries, int64_t n);  // the next n entries
  void end_of_documents() const;

  int64_t tokens() const { return end_ / item_; }  // so far
  int32_t longest() const { return longest_; }     // sequence so far

 private:
  [[noreturn]] void refuse_sequence(const std::byte* lengths, const std::byte* pointers, int64_t n) const;
  [[noreturn]] void refuse_document(const std::byte* boundaries, int64_t n) const;

  std::string idx_, bin_;  // paths
  IndexHeader header_;
  int64_t item_, bin_size_;
  int64_t sequences_ = 0, end_ = 0;     // seen so far; in bytes of the .bin
  int64_t entries_ = 0, boundary_ = 0;  // seen so far; the last one
  int32_t longest_ = 0;
};

}  // namespace megalith
