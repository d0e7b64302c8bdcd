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

/// The point up to which an IndexedDatasetWriter has written, so that a later writer can continue there.
struct WriterMark {
  int64_t sequences = 0, documents = 0, tokens = 0;
  uint64_t bin_hash = 0, lengths_hash = 0, documents_hash = 0;  // XXH64 of the writer's three .partial files
};

/// Writes PREFIX.bin and PREFIX.idx as Megatron's IndexedDatasetBuilder does, byte for byte
/// (docs/formats/indexed.md). Both files get their names only in finish(). If the writer is destroyed before
/// finish(), no file is left. Memory is constant: before finish(), lengths and document boundaries are kept
/// in nameless files next to the output.
class IndexedDatasetWriter {
 public:
  /// Creates the folder of `prefix` if it does not exist. kIo.
  IndexedDatasetWriter(std::string prefix, IndexedDType dtype);
  /// A writer that can be interrupted. It writes PREFIX.{bin,lengths,documents}.partial, which stay if it is
  /// destroyed before finish(). It continues at `from`, the result of an earlier writer's save(); if all
  /// members of `from` are zero, it starts anew. Throws kData if the files are shorter than `from` says, or
  /// if their hashes differ.
  IndexedDatasetWriter(std::string prefix, IndexedDType dtype, const WriterMark& from);
  ~IndexedDatasetWriter();
  IndexedDatasetWriter(const IndexedDatasetWriter&) = delete;
  IndexedDatasetWriter& operator=(const IndexedDatasetWriter&) = delete;

  /// For one of many writers that are open at a time: the files go through the page cache. Otherwise a large
  /// file takes a thread and 2 to 4 MiB of memory (see DirectWriter). Must be called before anything is
  /// added.
  void write_through_cache();

  /// Adds one document with one sequence per entry of `lengths`, which must add up to ids.size(). If
  /// `lengths` is empty, the document is empty: the .idx only repeats the last boundary. kData if an id does
  /// not fit the dtype; kInternal if the lengths do not add up or the dtype is a floating-point type.
  void add_document(std::span<const int32_t> ids, std::span<const int32_t> lengths);

  /// Writes everything added so far to the .partial files and returns the mark at which a later writer can
  /// continue. Only for a writer that can be interrupted, and only between documents.
  WriterMark save();
  /// Removes the .partial files that finish() left. Call it only when the last saved mark is no longer
  /// needed, since a writer that continues at the mark needs these files.
  void remove_partial_files();

  /// Adds documents in parts: first any number of calls of add_ids(), with ids in the dataset's type (see
  /// narrow_ids()), then one call of end_documents(). `sequences` holds the number of sequences of each
  /// document, `lengths` the number of tokens of each sequence. Throws kInternal if these do not add up to
  /// the added ids.
  void add_ids(std::span<const char> bytes);
  void end_documents(std::span<const int32_t> lengths, std::span<const int32_t> sequences);

  /// Completes both files and puts them in place; see DatasetPair::commit().
  void finish();
  /// finish() in steps, so that the .bin goes to the disk while the .idx is written. begin_finish() is
  /// optional: it starts to sync the .bin, and nothing may be added after it. complete() writes the .idx,
  /// starts to sync it, and returns the pair. The caller must then call commit() on the pair.
  void begin_finish();
  DatasetPair& complete();

  /// Fills in the sidecar's counts and hashes. To be called after complete().
  void describe(Sidecar& sidecar) const;

  int64_t sequences() const;
  int64_t documents() const;
  int64_t tokens() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Appends the ids to `out` as integers of type `dtype`. If an id does not fit in that type, returns the
/// first such id and leaves `out` unchanged.
std::optional<int32_t> narrow_ids(std::span<const int32_t> ids, IndexedDType dtype, ByteBuffer& out);

/// Tokens of one sequence, or of the whole dataset. They are converted to 64-bit integers on reading
/// (floating-point values are truncated). The bytes stay in the mapped file, which must outlive the span.
class TokenSpan {
 public:
  TokenSpan(const std::byte* data, int64_t size, IndexedDType dtype)
      : data_(data), size_(size), dtype_(dtype) {}
  int64_t size() const { return size_; }
  int64_t operator[](int64_t i) const;
  /// Copies all tokens to `out`, which has room for size() of them. The 32-bit version throws kData if an id
  /// does not fit in 32 bits.
  void copy_to(int64_t* out) const;
  void copy_to(int32_t* out) const;

 private:
  const std::byte* data_;
  int64_t size_;
  IndexedDType dtype_;
};

/// An open PREFIX.bin/PREFIX.idx, both mapped; copies share the mapping. The constructor checks the whole
/// .idx, so that readers need not: magic, version, dtype, counts against the file's size, lengths >= 0,
/// pointers = prefix sums, documents monotonic from 0 to S, and the .bin's size. kNoInput, kData. Throws
/// Stopped (io/streams/stop_signal.h) if a StopSignal exists and receives a signal meanwhile.
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
  /// Tokens of the sequences [begin, end), without reading their lengths.
  int64_t tokens_of(int64_t begin, int64_t end) const;
  /// Tells the processor that sequence_length(sequence) will be asked soon.
  void prefetch_length(int64_t sequence) const;
  /// Number of the document's first sequence. For `document` == documents(), returns sequences().
  int64_t document_begin(int64_t document) const;
  int64_t document_of(int64_t sequence) const;  // the document that holds the sequence
  /// `n` tokens of a sequence, beginning with token `from`. If `n` is -1, the span reaches to the sequence's
  /// end. Throws kInternal if the range is outside the sequence.
  TokenSpan sequence(int64_t sequence, int64_t from = 0, int64_t n = -1) const;
  TokenSpan all_tokens() const;
  const MappedFile& bin() const;
  const MappedFile& idx() const;
  /// A key for results that are cached for this dataset. It consists of the absolute prefix and of both
  /// files' current inodes, sizes and modification times, but does not depend on their contents. kIo.
  std::string file_key() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;  // shared: datasets of several splits read the same mapping
};

}  // namespace megalith
