#include "libcore/data/indexed/indexed_dataset.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include <sys/stat.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/index_check.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

/// The number of sequences or documents that are checked before their pages are released, so that opening an
/// .idx of many GiB does not fill memory.
constexpr int64_t kBlock = int64_t{1} << 20;

std::span<const std::byte> head_of(const MappedFile& idx) {
  return {idx.data(), std::min(idx.size(), kIndexedHeaderBytes)};
}

}  // namespace

struct IndexedDataset::State {
  explicit State(std::string name)
      : prefix(existing_dataset(std::move(name))),
        idx(prefix + ".idx"),
        bin(prefix + ".bin"),
        header(read_index_header(head_of(idx), idx.size(), idx.path())),
        lengths(idx.data() + header.lengths_at()),
        pointers(idx.data() + header.pointers_at()),
        documents(idx.data() + header.documents_at()) {
    IndexChecker checker(prefix, header, bin.size());
    check_sequences(checker);
    check_documents(checker);
    tokens = checker.tokens();
    longest = checker.longest();
  }

  int32_t length(int64_t i) const { return load_unaligned<int32_t>(lengths, i); }
  int64_t pointer(int64_t i) const { return load_unaligned<int64_t>(pointers, i); }
  int64_t document(int64_t i) const { return load_unaligned<int64_t>(documents, i); }

  void check_sequences(IndexChecker& checker) const {
    for (int64_t i = 0; i < header.sequences; i += kBlock) {
      stop_if_asked();
      const int64_t n = std::min(kBlock, header.sequences - i);
      checker.sequences(lengths + 4 * i, pointers + 8 * i, n);
      forget(lengths + 4 * i, 4 * n);
      forget(pointers + 8 * i, 8 * n);
    }
    checker.end_of_sequences();
  }

  void check_documents(IndexChecker& checker) const {
    for (int64_t i = 0; i < header.entries; i += kBlock) {
      stop_if_asked();
      const int64_t n = std::min(kBlock, header.entries - i);
      checker.documents(documents + 8 * i, n);
      forget(documents + 8 * i, 8 * n);
    }
    checker.end_of_documents();
  }

  void forget(const std::byte* array, int64_t bytes) const {
    idx.forget(static_cast<size_t>(array - idx.data()), static_cast<size_t>(bytes));
  }

  std::string prefix;
  MappedFile idx, bin;
  IndexHeader header;
  const std::byte *lengths, *pointers, *documents;
  int64_t tokens = 0;
  int32_t longest = 0;
};

IndexedDataset::IndexedDataset(std::string prefix)
    : state_(std::make_shared<const State>(std::move(prefix))) {}

const std::string& IndexedDataset::prefix() const {
  return state_->prefix;
}
IndexedDType IndexedDataset::dtype() const {
  return state_->header.dtype;
}
int64_t IndexedDataset::sequences() const {
  return state_->header.sequences;
}
int64_t IndexedDataset::documents() const {
  return state_->header.entries - 1;
}
int64_t IndexedDataset::tokens() const {
  return state_->tokens;
}
int32_t IndexedDataset::longest_sequence() const {
  return state_->longest;
}
int32_t IndexedDataset::sequence_length(int64_t sequence) const {
  return state_->length(sequence);
}
int64_t IndexedDataset::tokens_of(int64_t begin, int64_t end) const {
  // that pointers are sums of the lengths was checked
  const auto item = static_cast<int64_t>(size_of(dtype()));
  const auto tokens_before = [&](int64_t i) {
    if (i == 0) return int64_t{0};
    return i == sequences() ? tokens() : state_->pointer(i) / item;
  };
  return tokens_before(end) - tokens_before(begin);
}
void IndexedDataset::prefetch_length(int64_t sequence) const {
  __builtin_prefetch(state_->lengths + 4 * sequence);
}
int64_t IndexedDataset::document_begin(int64_t document) const {
  return state_->document(document);
}
const MappedFile& IndexedDataset::bin() const {
  return state_->bin;
}
const MappedFile& IndexedDataset::idx() const {
  return state_->idx;
}

std::string IndexedDataset::file_key() const {
  std::string key = std::filesystem::absolute(prefix()).string();
  for (const char* ending : {".bin", ".idx"}) {
    struct stat info {};
    const std::string path = prefix() + ending;
    if (::stat(path.c_str(), &info) != 0) fail(ErrorKind::kIo, path, ": cannot inspect");
    key += concat('|', info.st_ino, '|', info.st_size, '|', info.st_mtim.tv_sec, '.', info.st_mtim.tv_nsec);
  }
  return key;
}

int64_t IndexedDataset::document_of(int64_t sequence) const {
  // binary search for the last document that begins at or before `sequence`
  int64_t low = 0, high = documents();
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (document_begin(middle) <= sequence ? low : high) = middle;
  }
  return low;
}

TokenSpan IndexedDataset::sequence(int64_t sequence, int64_t from, int64_t n) const {
  if (sequence < 0 || sequence >= sequences())
    fail(ErrorKind::kInternal, prefix(), ": sequence ", sequence, " of ", sequences(), " requested");
  const int64_t length = sequence_length(sequence);
  if (n < 0) n = length - from;
  if (from < 0 || n < 0 || from > length - n)
    fail(ErrorKind::kInternal, prefix(), ": tokens ", from, " to ", from + n, " of sequence ", sequence,
         " requested, which has ", length);
  const auto item = static_cast<int64_t>(size_of(dtype()));
  return {state_->bin.data() + state_->pointer(sequence) + from * item, n, dtype()};
}

TokenSpan IndexedDataset::all_tokens() const {
  return {state_->bin.data(), tokens(), dtype()};
}

int64_t TokenSpan::operator[](int64_t i) const {
  return with_type(dtype_,
                   [&](auto type) { return static_cast<int64_t>(load_unaligned<decltype(type)>(data_, i)); });
}

void TokenSpan::copy_to(int64_t* out) const {
  with_type(dtype_, [&](auto type) {
    for (int64_t i = 0; i < size_; ++i)
      out[i] = static_cast<int64_t>(load_unaligned<decltype(type)>(data_, i));
  });
}

void TokenSpan::copy_to(int32_t* out) const {
  with_type(dtype_, [&](auto type) {
    using T = decltype(type);
    for (int64_t i = 0; i < size_; ++i) {
      const T id = load_unaligned<T>(data_, i);
      if constexpr (sizeof(T) > 4)
        if (static_cast<int64_t>(id) != static_cast<int32_t>(id))
          fail(ErrorKind::kData, "token id ", id, " does not fit 32 bits");
      out[i] = static_cast<int32_t>(id);
    }
  });
}

}  // namespace megalith
