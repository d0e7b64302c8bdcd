#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "libcore/data/indexed/indexed_format.h"

namespace megalith {

/// The contents of the first 34 bytes of an .idx, and the offsets of its arrays.
struct IndexHeader {
  IndexedDType dtype{};
  int64_t sequences = 0, entries = 0;  // `entries`: size of the document array, documents + 1

  uint64_t lengths_at() const { return kIndexedHeaderBytes; }
  uint64_t pointers_at() const { return lengths_at() + 4 * static_cast<uint64_t>(sequences); }
  uint64_t documents_at() const { return pointers_at() + 8 * static_cast<uint64_t>(sequences); }
  uint64_t file_size() const { return documents_at() + 8 * static_cast<uint64_t>(entries); }
};

/// Returns the prefix if PREFIX.bin and PREFIX.idx exist. `prefix` may also be one of these two files, as a
/// shell completes it. Otherwise throws kNoInput, naming the missing file.
std::string existing_dataset(std::string prefix);

/// Reads the header of an .idx of `file_size` bytes. `head` holds the first min(34, file_size) bytes of the
/// file; `path` appears in messages. Throws kData if the magic, the version or the token type is wrong, or if
/// the counts do not match `file_size`.
IndexHeader read_index_header(std::span<const std::byte> head, uint64_t file_size, const std::string& path);

/// Checks the arrays of an .idx while they are read, from front to back, in blocks of any size: lengths are
/// not negative, each pointer is the sum of the lengths before it in bytes, document boundaries rise from 0
/// to the number of sequences, and the sum of all lengths is the .bin's size. A failed check throws kData
/// with the file and the place in it. The arrays need not be aligned.
class IndexChecker {
 public:
  IndexChecker(const std::string& prefix, const IndexHeader& header, uint64_t bin_size);

  // checks the next n sequences
  void sequences(const std::byte* lengths, const std::byte* pointers, int64_t n);
  void end_of_sequences() const;
  void documents(const std::byte* boundaries, int64_t n);  // checks the next n entries
  void end_of_documents() const;

  int64_t tokens() const { return end_ / item_; }  // number of tokens so far
  int32_t longest() const { return longest_; }     // length of the longest sequence so far

 private:
  [[noreturn]] void refuse_sequence(const std::byte* lengths, const std::byte* pointers, int64_t n) const;
  [[noreturn]] void refuse_document(const std::byte* boundaries, int64_t n) const;

  std::string idx_, bin_;  // paths
  IndexHeader header_;
  int64_t item_, bin_size_;
  // sequences checked so far; offset in the .bin at which the last one ends
  int64_t sequences_ = 0, end_ = 0;
  int64_t entries_ = 0, boundary_ = 0;  // document entries checked so far; the last one's value
  int32_t longest_ = 0;
};

}  // namespace megalith
