#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "libcore/base/byte_buffer.h"
#include "libcore/data/indexed/indexed_format.h"
#include "libcore/io/files/file.h"

namespace megalith {

struct DatasetPair;
struct Sidecar;

/// What an interrupted writer has written; see IndexedDatasetWriter.
struct WriterMark {
  int64_t sequences = 0, documents = 0, tokens = 0;
  uint64_t bin_hash = 0, lengths_hash = 0, documents_hash = 0;  // XXH64 of its three files
};

/// Writes PREFIX.bin and PREFIX.idx as Megatron's IndexedDatasetBuilder does, byte for byte
/// (docs/formats/indexed.md). Both appear under their names only in finish(); if destroyed before, nothing is
/// left. Memory is constant: lengths and boundaries are kept in nameless files next to the output.
class IndexedDatasetWriter {
 public:
  /// Creates the folder of `prefix` if it does not exist. kIo.
  IndexedDatasetWriter(std::string prefix, IndexedDType dtype);
  /// A writer that can be interrupted: what it writes is kept in PREFIX.{bin,lengths,documents}.partial,
  /// which stay if it is destroyed before finish(). It continues at `from`, the result of an earlier writer's
  /// save() (all zero: at the beginning). kData if the files hold less, or something else.
  IndexedDatasetWriter(std::string prefix, IndexedDType dtype, const WriterMark& from);
  ~IndexedDatasetWriter();
  IndexedDatasetWriter(const IndexedDatasetWriter&) = delete;
  IndexedDatasetWriter& operator=(const IndexedDatasetWriter&) = delete;

  /// One document with one sequence per entry of `lengths` (which add up to ids.size()). No sequence: an
  /// empty document, which is only a repeated boundary. kData if an id does not fit the dtype; kInternal if
  /// the lengths do not add up or the dtype is a floating-point one.
  void add_document(std::span<const int32_t> ids, std::span<const int32_t> lengths);

  /// The mark of a writer that can be interrupted, between documents. Everything so far is in its files, so
  /// that a later writer can continue there.
  WriterMark save();
  /// Removes those files that finish() left. Call it only once the mark is no longer needed: a mark needs its
  /// files.
  void remove_partial_files();

  /// Many documents in parts: first any number of add_ids(), with ids in the dataset's type (see narrow_ids),
  /// then end_documents(): `sequences` holds the number of sequences of each document, `lengths` the number
  /// of tokens of each sequence. kInternal if they do not add up to what was added.
  void add_ids(std::span<const char> bytes);
  void end_documents(std::span<const int32_t> lengths, std::span<const int32_t> sequences);

  /// Puts both files in place, see DatasetPair::commit().
  void finish();
  /// finish() in steps, so that the disk works while the .idx is made. begin_finish() begins to bring the
  /// .bin to the disk; nothing may be added after it, and it may be omitted. complete() writes the .idx,
  /// begins to bring it to the disk, and returns the pair, for which only commit() is left.
  void begin_finish();
  DatasetPair& complete();

  /// To be called after complete(): fills in counts and hashes.
  void describe(Sidecar& sidecar) const;

  int64_t sequences() const;
  int64_t documents() const;
  int64_t tokens() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Appends the ids to `out` as integers of a dataset of type `dtype`. Returns the first id that does not fit,
/// if any; `out` is then unchanged.
std::optional<int32_t> narrow_ids(std::span<const int32_t> ids, IndexedDType dtype, ByteBuffer& out);

/// Tokens of one sequence, widened on reading (floating-point ones truncated). The bytes stay in the mapped
/// file, which must outlive the span.
class TokenSpan {
 public:
  TokenSpan(const std::byte* data, int64_t size, IndexedDType dtype)
      : data_(data), size_(size), dtype_(dtype) {}
  int64_t size() const { return size_; }
  int64_t operator[](int64_t i) const;
  /// Copies all tokens to `out` (room for size()). kData if an id does not fit in 32 bits.
  void copy_to(int64_t* out) const;
  void copy_to(int32_t* out) const;

 private:
  const std::byte* data_;
  int64_t size_;
  IndexedDType dtype_;
};

/// An open PREFIX.bin/PREFIX.idx, both mapped; copies share the mapping. The constructor checks the whole
/// .idx, so that readers need not: magic, version, dtype, counts against the file's size, lengths >= 0,
/// pointers = prefix sums, documents monotonic from 0 to S, and the .bin's size. kNoInput, kData.
class IndexedDataset {
 public:
  explicit IndexedDataset(std::string prefix);

  const std::string& prefix() const;
  IndexedDType dtype() const;
  int64_t sequences() const;
  int64_t documents() const;
  int64_t tokens() const;
  int32_t sequence_length(int64_t sequence) const;
  int32_t longest_sequence() const;  // 0 if there is none
  /// Number of the document's first sequence; document == documents() gives sequences().
  int64_t document_begin(int64_t document) const;
  int64_t document_of(int64_t sequence) const;  // the document that holds it
  /// `n` tokens of a sequence from token `from` on; n = -1: to its end. kInternal if out of range.
  TokenSpan sequence(int64_t sequence, int64_t from = 0, int64_t n = -1) const;
  TokenSpan all_tokens() const;
  const MappedFile& bin() const;
  const MappedFile& idx() const;
  /// The absolute prefix, and the inode, size and modification time of both files now: everything except the
  /// bytes on which a result kept for the dataset depends. kIo.
  std::string file_key() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;  // shared: datasets of several splits read the same mapping
};

}  // namespace megalith
