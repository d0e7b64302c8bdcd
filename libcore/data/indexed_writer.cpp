#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/scratch_file.h"
#include "libcore/base/xxh64.h"
#include "libcore/data/dataset_pair.h"
#include "libcore/data/indexed_dataset.h"
#include "libcore/data/sidecar.h"

namespace megalith {
namespace {

constexpr size_t kPiece = size_t{1} << 16;  // tokens narrowed at a time

/// A file of the pair and the hash of what was written to it.
struct HashedFile {
  void write(const void* data, size_t bytes) {
    file.write(data, bytes);
    hash.update(data, bytes);
  }
  AtomicFile& file;
  Xxh64 hash = {};
};

template <class T>
void write_value(HashedFile& file, T value) {
  file.write(&value, sizeof(T));
}

void copy_scratch(const ScratchFile& from, HashedFile& to) {
  from.read([&](std::span<const std::byte> block) { to.write(block.data(), block.size()); });
}

std::string folder_of(const std::string& prefix) {
  const std::filesystem::path folder = std::filesystem::path(prefix).parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace

struct IndexedDatasetWriter::State {
  State(std::string name, IndexedDType type)
      : files(std::move(name)),
        prefix(files.prefix),
        dtype(type),
        lengths(folder_of(prefix)),
        boundaries(folder_of(prefix)) {
    boundaries.append(&sequences, sizeof sequences);
  }

  DatasetPair files;
  const std::string& prefix;
  IndexedDType dtype;
  HashedFile bin{files.bin}, idx{files.idx};
  ScratchFile lengths, boundaries;  // int32 a sequence; int64 a document, and the 0 before the first
  int64_t sequences = 0, documents = 0, tokens = 0;
  int64_t open_tokens = 0;  // of the sequence that is not ended
  ByteBuffer narrowed;      // some tokens in the file's type
};

IndexedDatasetWriter::IndexedDatasetWriter(std::string prefix, IndexedDType dtype)
    : state_(std::make_unique<State>(std::move(prefix), dtype)) {}

IndexedDatasetWriter::~IndexedDatasetWriter() = default;

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
  int64_t sum = 0;
  for (const int32_t n : lengths) {
    if (n < 0) fail(ErrorKind::kInternal, s.prefix, ": a sequence of length ", n, " was added");
    sum += n;
  }
  if (sum != static_cast<int64_t>(ids.size()) || s.open_tokens != 0)
    fail(ErrorKind::kInternal, s.prefix, ": ", ids.size(), " ids of ", sum, " were added behind ",
         s.open_tokens);
  add_tokens(ids);
  s.open_tokens = 0;
  s.lengths.append(lengths.data(), lengths.size_bytes());
  s.sequences += static_cast<int64_t>(lengths.size());
  end_document();
}

void IndexedDatasetWriter::add_tokens(std::span<const int32_t> ids) {
  State& s = *state_;
  if (is_floating(s.dtype))
    fail(ErrorKind::kInternal, s.prefix, ": token ids were added as ", name_of(s.dtype));
  for (; !ids.empty(); ids = ids.subspan(std::min(ids.size(), kPiece))) {
    const std::span<const int32_t> piece = ids.first(std::min(ids.size(), kPiece));
    s.narrowed.clear();
    if (const std::optional<int32_t> bad = narrow_ids(piece, s.dtype, s.narrowed))
      fail(ErrorKind::kData, s.prefix, ": token id ", *bad, " of document ", documents(), " does not fit ",
           name_of(s.dtype), "; the tokenizer's vocabulary is larger than it says");
    s.bin.write(s.narrowed.data(), s.narrowed.size());
    s.tokens += static_cast<int64_t>(piece.size());
    s.open_tokens += static_cast<int64_t>(piece.size());
  }
}

void IndexedDatasetWriter::end_sequence() {
  State& s = *state_;
  if (s.open_tokens > std::numeric_limits<int32_t>::max())
    fail(ErrorKind::kData, s.prefix, ": document ", documents(), " has a text of ", s.open_tokens,
         " tokens; a sequence holds at most 2,147,483,647: split the text");
  const auto length = static_cast<int32_t>(std::exchange(s.open_tokens, 0));
  s.lengths.append(&length, sizeof length);
  ++s.sequences;
}

void IndexedDatasetWriter::end_document() {
  State& s = *state_;
  if (s.open_tokens != 0) fail(ErrorKind::kInternal, s.prefix, ": a document ended inside a sequence");
  s.boundaries.append(&s.sequences, sizeof s.sequences);
  ++s.documents;
}

void IndexedDatasetWriter::add_documents(std::span<const char> tokens, std::span<const int32_t> lengths,
                                         std::span<const int32_t> sequences) {
  State& s = *state_;
  const auto sum = [](std::span<const int32_t> numbers) {
    return static_cast<size_t>(std::accumulate(numbers.begin(), numbers.end(), int64_t{0}));
  };
  if (sum(lengths) * size_of(s.dtype) != tokens.size() || sum(sequences) != lengths.size() ||
      s.open_tokens != 0)
    fail(ErrorKind::kInternal, s.prefix, ": ", tokens.size(), " bytes were added as ", lengths.size(),
         " sequences of ", sum(lengths), " tokens, ", sequences.size(), " documents");
  s.bin.write(tokens.data(), tokens.size());
  s.tokens += static_cast<int64_t>(sum(lengths));
  s.lengths.append(lengths.data(), lengths.size_bytes());
  for (const int32_t n : sequences) {
    s.sequences += n;
    end_document();
  }
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
  State& s = *state_;
  s.idx.write(kIndexedMagic.data(), kIndexedMagic.size());
  write_value(s.idx, kIndexedVersion);
  write_value(s.idx, static_cast<uint8_t>(s.dtype));
  write_value(s.idx, static_cast<uint64_t>(s.sequences));
  write_value(s.idx, static_cast<uint64_t>(s.documents + 1));
  copy_scratch(s.lengths, s.idx);
  int64_t pointer = 0;
  s.lengths.read([&](std::span<const std::byte> block) {
    for (size_t at = 0; at < block.size(); at += sizeof(int32_t)) {
      int32_t length = 0;
      std::memcpy(&length, block.data() + at, sizeof length);
      write_value(s.idx, pointer);
      pointer += length * static_cast<int64_t>(size_of(s.dtype));
    }
  });
  copy_scratch(s.boundaries, s.idx);
  s.files.commit();
}

void IndexedDatasetWriter::describe(Sidecar& sidecar) const {
  sidecar.documents = documents();
  sidecar.sequences = sequences();
  sidecar.tokens = tokens();
  sidecar.bin_parts = {{state_->bin.file.size(), hex64(state_->bin.hash.digest())}};
  sidecar.idx_hash = hex64(state_->idx.hash.digest());
}

}  // namespace megalith
