#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/data/indexed/dataset_pair.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/io/files/kept_bytes.h"
#include "libcore/io/files/scratch_file.h"

namespace megalith {
namespace {

constexpr uint64_t kLargeIndex = uint64_t{4} << 20;
constexpr size_t kPointers = 4096;  // number of .idx pointers that are computed at a time: 32 KiB

/// A file of the pair and the hash of the bytes written to it.
struct HashedFile {
  void write(const void* data, size_t bytes) {
    file.write(data, bytes);
    hash.update(data, bytes);
  }
  AtomicFile& file;
  Xxh64 hash = Xxh64();
};

std::string partial_lengths(const std::string& prefix) {
  return AtomicFile::partial_name(prefix + ".lengths");
}
std::string partial_documents(const std::string& prefix) {
  return AtomicFile::partial_name(prefix + ".documents");
}

template <class T>
void write_value(HashedFile& file, T value) {
  file.write(&value, sizeof(T));
}

void copy_scratch(const ScratchFile& from, HashedFile& to) {
  from.read([&](std::span<const std::byte> block) { to.write(block.data(), block.size()); });
}

/// Writes the pointers of the .idx: for each sequence, the offset in the .bin at which it begins.
void write_pointers(const ScratchFile& lengths, int64_t token_bytes, HashedFile& to) {
  std::vector<int64_t> pointers;
  pointers.reserve(kPointers);
  int64_t next = 0;
  const auto write = [&] {
    to.write(pointers.data(), pointers.size() * sizeof(int64_t));
    pointers.clear();
  };
  lengths.read([&](std::span<const std::byte> block) {
    for (size_t at = 0; at < block.size(); at += sizeof(int32_t)) {
      int32_t length = 0;
      std::memcpy(&length, block.data() + at, sizeof length);
      pointers.push_back(std::exchange(next, next + length * token_bytes));
      if (pointers.size() == kPointers) write();
    }
  });
  write();
}

}  // namespace

struct IndexedDatasetWriter::State {
  State(std::string name, IndexedDType type)
      : files(std::move(name)),
        prefix(files.prefix),
        dtype(type),
        lengths(parent_or_here(prefix).string()),
        boundaries(parent_or_here(prefix).string()) {
    boundaries.append(&sequences, sizeof sequences);
    stream_to_disk();
  }
  State(std::string name, IndexedDType type, const WriterMark& from)
      : files(std::move(name), static_cast<uint64_t>(from.tokens) * size_of(type)),
        prefix(files.prefix),
        dtype(type),
        lengths(partial_lengths(prefix),
                {sizeof(int32_t) * static_cast<uint64_t>(from.sequences), from.lengths_hash}),
        boundaries(partial_documents(prefix),
                   {from.documents == 0 ? 0 : sizeof(int64_t) * static_cast<uint64_t>(from.documents + 1),
                    from.documents_hash}),
        sequences(from.sequences),
        documents(from.documents),
        tokens(from.tokens) {
    if (documents == 0) boundaries.append(&sequences, sizeof sequences);
    bin.hash = hash_kept(files.bin, {bytes_of(tokens), from.bin_hash});
    stream_to_disk();
  }

  void stream_to_disk() {
    files.bin.stream_to_disk();
    files.idx.stream_to_disk(kLargeIndex);
  }
  uint64_t bytes_of(int64_t count) const { return static_cast<uint64_t>(count) * size_of(dtype); }
  void add_boundary() {
    boundaries.append(&sequences, sizeof sequences);
    ++documents;
  }

  DatasetPair files;
  const std::string& prefix;
  IndexedDType dtype;
  HashedFile bin{files.bin}, idx{files.idx};
  // `lengths`: an int32 per sequence. `boundaries`: a 0 and one entry per document, all int64.
  ScratchFile lengths, boundaries;
  int64_t sequences = 0, documents = 0, tokens = 0;
  uint64_t open_bytes = 0;  // bytes added since the last end_documents()
  ByteBuffer narrowed;      // tokens converted to the file's type
};

IndexedDatasetWriter::IndexedDatasetWriter(std::string prefix, IndexedDType dtype)
    : state_(std::make_unique<State>(std::move(prefix), dtype)) {}

IndexedDatasetWriter::IndexedDatasetWriter(std::string prefix, IndexedDType dtype, const WriterMark& from)
    : state_(std::make_unique<State>(std::move(prefix), dtype, from)) {}

IndexedDatasetWriter::~IndexedDatasetWriter() = default;

void IndexedDatasetWriter::write_through_cache() {
  state_->files.bin.write_back_early();
  state_->files.idx.write_back_early();
}

int64_t IndexedDatasetWriter::sequences() const {
  return state_->sequences;
}
int64_t IndexedDatasetWriter::documents() const {
  return state_->documents;
}
int64_t IndexedDatasetWriter::tokens() const {
  return state_->tokens;
}

void IndexedDatasetWriter::add_document(std::span<const int32_t> ids, std::span<const int32_t> lengths) {
  State& s = *state_;
  if (is_floating(s.dtype))
    fail(ErrorKind::kInternal, s.prefix, ": token ids were added as ", name_of(s.dtype));
  for (const int32_t n : lengths)
    if (n < 0) fail(ErrorKind::kInternal, s.prefix, ": a sequence of length ", n, " was added");
  s.narrowed.clear();
  if (const std::optional<int32_t> bad = narrow_ids(ids, s.dtype, s.narrowed))
    fail(ErrorKind::kData, s.prefix, ": token id ", *bad, " of document ", documents(), " does not fit ",
         name_of(s.dtype), "; the tokenizer's vocabulary is larger than it says");
  add_ids({s.narrowed.data(), s.narrowed.size()});
  const auto sequences = static_cast<int32_t>(lengths.size());
  end_documents(lengths, {&sequences, 1});
}

void IndexedDatasetWriter::add_ids(std::span<const char> bytes) {
  state_->bin.write(bytes.data(), bytes.size());
  state_->open_bytes += bytes.size();
}

void IndexedDatasetWriter::end_documents(std::span<const int32_t> lengths,
                                         std::span<const int32_t> sequences) {
  State& s = *state_;
  const auto sum = [](std::span<const int32_t> numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
  };
  const int64_t added = sum(lengths);
  if (s.bytes_of(added) != s.open_bytes || sum(sequences) != static_cast<int64_t>(lengths.size()))
    fail(ErrorKind::kInternal, s.prefix, ": ", s.open_bytes, " bytes were added as ", lengths.size(),
         " sequences of ", added, " tokens, ", sequences.size(), " documents");
  s.open_bytes = 0;
  s.tokens += added;
  s.lengths.append(lengths.data(), lengths.size_bytes());
  for (const int32_t n : sequences) {
    s.sequences += n;
    s.add_boundary();
  }
}

WriterMark IndexedDatasetWriter::save() {
  State& s = *state_;
  if (s.open_bytes != 0) fail(ErrorKind::kInternal, s.prefix, ": a dataset was saved inside a document");
  s.bin.file.sync();
  return {.sequences = s.sequences,
          .documents = s.documents,
          .tokens = s.tokens,
          .bin_hash = s.bin.hash.digest(),
          .lengths_hash = s.lengths.save().hash,
          .documents_hash = s.boundaries.save().hash};
}

void IndexedDatasetWriter::remove_partial_files() {
  ::unlink(partial_lengths(state_->prefix).c_str());
  ::unlink(partial_documents(state_->prefix).c_str());
}

std::optional<int32_t> narrow_ids(std::span<const int32_t> ids, IndexedDType dtype, ByteBuffer& out) {
  return with_type(dtype, [&](auto type) -> std::optional<int32_t> {
    using T = decltype(type);
    const auto fits = [](int32_t id) { return static_cast<int64_t>(static_cast<T>(id)) == id; };
    bool all = true;
    for (const int32_t id : ids) all &= fits(id);
    if (!all) return *std::find_if_not(ids.begin(), ids.end(), fits);
    char* at = out.extend(ids.size() * sizeof(T));
    for (const int32_t id : ids) {
      const T value = static_cast<T>(id);
      std::memcpy(at, &value, sizeof(T));
      at += sizeof(T);
    }
    return std::nullopt;
  });
}

void IndexedDatasetWriter::finish() {
  complete().commit();
}

void IndexedDatasetWriter::begin_finish() {
  state_->files.bin.start_sync();
}

DatasetPair& IndexedDatasetWriter::complete() {
  State& s = *state_;
  begin_finish();
  s.idx.write(kIndexedMagic.data(), kIndexedMagic.size());
  write_value(s.idx, kIndexedVersion);
  write_value(s.idx, static_cast<uint8_t>(s.dtype));
  write_value(s.idx, static_cast<uint64_t>(s.sequences));
  write_value(s.idx, static_cast<uint64_t>(s.documents + 1));
  copy_scratch(s.lengths, s.idx);
  write_pointers(s.lengths, static_cast<int64_t>(size_of(s.dtype)), s.idx);
  copy_scratch(s.boundaries, s.idx);
  s.files.idx.start_sync();
  return s.files;
}

void IndexedDatasetWriter::describe(Sidecar& sidecar) const {
  sidecar.documents = documents();
  sidecar.sequences = sequences();
  sidecar.tokens = tokens();
  sidecar.bin_parts = {{state_->bin.file.size(), hex64(state_->bin.hash.digest())}};
  sidecar.idx_hash = hex64(state_->idx.hash.digest());
}

}  // namespace megalith
