#include "libcore/data/indexed_dataset.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

static_assert(std::endian::native == std::endian::little, "the .idx and .bin bytes are used in place");

constexpr const char* kCut = "; it was probably cut: run preprocess again, or restore the file";
constexpr const char* kDamaged = "; the file is damaged: run preprocess again, or restore the file";

/// Element i of an array of T that begins anywhere.
template <class T>
T load(const std::byte* array, int64_t i) {
  T value;
  std::memcpy(&value, array + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

/// `prefix` when both its files are there. One missing half says more than "not there".
std::string present(std::string prefix) {
  const bool idx = file_exists(prefix + ".idx"), bin = file_exists(prefix + ".bin");
  if (idx && bin) return prefix;
  if (idx || bin)
    fail(ErrorKind::kNoInput, prefix, idx ? ".bin" : ".idx", ": is not there, but ", prefix,
         idx ? ".idx" : ".bin", " is: preprocess did not finish, or one file of the pair was moved");
  const std::string_view ending = prefix.size() > 4 ? std::string_view(prefix).substr(prefix.size() - 4) : "";
  if ((ending == ".bin" || ending == ".idx") && file_exists(prefix))
    fail(ErrorKind::kNoInput, prefix, ".idx: is not there; a dataset is named by its prefix, here ",
         quote(prefix.substr(0, prefix.size() - 4)));
  fail(ErrorKind::kNoInput, prefix, ".idx: is not there, nor is ", prefix,
       ".bin; wanted the prefix of a dataset");
}

struct Header {
  IndexedDType dtype;
  int64_t sequences, entries;  // entries of the document array = documents + 1
};

Header read_header(const MappedFile& idx) {
  const std::string& path = idx.path();
  if (idx.size() < kIndexedHeaderBytes)
    fail(ErrorKind::kData, path, ": is ", idx.size(), " bytes, its header alone takes ", kIndexedHeaderBytes,
         kCut);
  if (std::memcmp(idx.data(), kIndexedMagic.data(), kIndexedMagic.size()) != 0)
    fail(ErrorKind::kData, path, ": begins with ", quote(idx.text().substr(0, kIndexedMagic.size())),
         ", wanted \"MMIDIDX\" and two zero bytes; it is not the index of a dataset, or is damaged");
  const auto version = load<uint64_t>(idx.data() + 9, 0);
  if (version != kIndexedVersion)
    fail(ErrorKind::kData, path, ": version ", version, ", only version ", kIndexedVersion, " exists",
         kDamaged);
  const auto code = load<uint8_t>(idx.data() + 17, 0);
  if (!is_indexed_dtype(code))
    fail(ErrorKind::kData, path, ": token type code ", static_cast<int>(code), ", wanted 1 to 8", kDamaged);
  const auto sequences = load<uint64_t>(idx.data() + 18, 0), entries = load<uint64_t>(idx.data() + 26, 0);
  constexpr auto kMost =
      static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 64);  // products stay in 64 bits
  if (sequences > kMost || entries > kMost)
    fail(ErrorKind::kData, path, ": ", sequences, " sequences and ", entries,
         " document entries declared in ", idx.size(), " bytes", kDamaged);
  return {static_cast<IndexedDType>(code), static_cast<int64_t>(sequences), static_cast<int64_t>(entries)};
}

/// The file's size against the declared counts; where it is short, the array that it ends in.
void check_size(const MappedFile& idx, const Header& h) {
  const auto size = static_cast<int64_t>(idx.size());
  const auto header = static_cast<int64_t>(kIndexedHeaderBytes);
  const int64_t wanted = header + 12 * h.sequences + 8 * h.entries;
  if (size == wanted) return;
  if (size > wanted && size - wanted == h.sequences)
    fail(ErrorKind::kData, idx.path(), ": one byte a sequence (", h.sequences,
         ") behind the document array; it is the index of a multimodal dataset, which is not supported");
  if (size > wanted)
    fail(ErrorKind::kData, idx.path(), ": ", h.sequences, " sequences and ", h.entries,
         " document entries declared take ", wanted, " bytes, the file is ", size, kDamaged);
  const int64_t body = size - header;
  if (body < 4 * h.sequences)
    fail(ErrorKind::kData, idx.path(), ": ", h.sequences, " sequences declared but lengths end after ",
         body / 4, " (file is ", size, " bytes)", kCut);
  if (body < 12 * h.sequences)
    fail(ErrorKind::kData, idx.path(), ": ", h.sequences, " sequences declared but pointers end after ",
         (body - 4 * h.sequences) / 8, " (file is ", size, " bytes)", kCut);
  fail(ErrorKind::kData, idx.path(), ": ", h.entries, " document entries declared but they end after ",
       (body - 12 * h.sequences) / 8, " (file is ", size, " bytes)", kCut);
}

}  // namespace

struct IndexedDataset::State {
  explicit State(std::string name)
      : prefix(present(std::move(name))), idx(prefix + ".idx"), bin(prefix + ".bin") {
    header = read_header(idx);
    check_size(idx, header);
    lengths = idx.data() + kIndexedHeaderBytes;
    pointers = lengths + 4 * header.sequences;
    documents = pointers + 8 * header.sequences;
    check_sequences();
    check_documents();
  }

  int32_t length(int64_t i) const { return load<int32_t>(lengths, i); }
  int64_t pointer(int64_t i) const { return load<int64_t>(pointers, i); }
  int64_t document(int64_t i) const { return load<int64_t>(documents, i); }

  void check_sequences() {
    const auto item = static_cast<int64_t>(size_of(header.dtype));
    const auto bin_size = static_cast<int64_t>(bin.size());
    int64_t end = 0;  // in bytes; held below the .bin's size, so that it cannot overflow
    for (int64_t i = 0; i < header.sequences; ++i) {
      const int32_t n = length(i);
      if (n < 0) fail(ErrorKind::kData, idx.path(), ": sequence ", i, " has the length ", n, kDamaged);
      if (pointer(i) != end)
        fail(ErrorKind::kData, idx.path(), ": sequence ", i, " begins at byte ", pointer(i),
             ", the lengths before it end at byte ", end, kDamaged);
      longest = std::max(longest, n);
      end += n * item;
      if (end > bin_size)
        fail(ErrorKind::kData, bin.path(), ": is ", bin_size, " bytes, but sequence ", i, " of ",
             header.sequences, " in ", idx.path(), " ends at byte ", end, kCut);
    }
    tokens = end / item;
    if (end != bin_size)
      fail(ErrorKind::kData, bin.path(), ": is ", bin_size, " bytes, but the ", tokens, " tokens of type ",
           name_of(header.dtype), " that ", idx.path(), " describes take ", end,
           "; the two files do not belong together: run preprocess again, or restore them");
  }

  void check_documents() const {
    if (header.entries < 1) fail(ErrorKind::kData, idx.path(), ": the document array is empty", kDamaged);
    if (document(0) != 0)
      fail(ErrorKind::kData, idx.path(), ": document 0 begins at sequence ", document(0), ", not at 0",
           kDamaged);
    for (int64_t i = 1; i < header.entries; ++i)
      if (document(i) < document(i - 1))
        fail(ErrorKind::kData, idx.path(), ": document ", i - 1, " begins at sequence ", document(i - 1),
             " and ends at ", document(i), kDamaged);
    if (document(header.entries - 1) != header.sequences)
      fail(ErrorKind::kData, idx.path(), ": the last document ends at sequence ",
           document(header.entries - 1), " of ", header.sequences, kDamaged);
  }

  std::string prefix;
  MappedFile idx, bin;
  Header header{};
  const std::byte *lengths = nullptr, *pointers = nullptr, *documents = nullptr;
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
int64_t IndexedDataset::document_begin(int64_t document) const {
  return state_->document(document);
}
const MappedFile& IndexedDataset::bin() const {
  return state_->bin;
}
const MappedFile& IndexedDataset::idx() const {
  return state_->idx;
}

int64_t IndexedDataset::document_of(int64_t sequence) const {
  int64_t low = 0, high = documents();  // the last document that begins at or before `sequence`
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (document_begin(middle) <= sequence ? low : high) = middle;
  }
  return low;
}

TokenSpan IndexedDataset::sequence(int64_t sequence, int64_t from, int64_t n) const {
  if (sequence < 0 || sequence >= sequences())
    fail(ErrorKind::kInternal, prefix(), ": sequence ", sequence, " of ", sequences(), " asked for");
  const int64_t length = sequence_length(sequence);
  if (n < 0) n = length - from;
  if (from < 0 || n < 0 || from > length - n)
    fail(ErrorKind::kInternal, prefix(), ": tokens ", from, " to ", from + n, " of sequence ", sequence,
         " asked for, which has ", length);
  const auto item = static_cast<int64_t>(size_of(dtype()));
  return {state_->bin.data() + state_->pointer(sequence) + from * item, n, dtype()};
}

TokenSpan IndexedDataset::all_tokens() const {
  return {state_->bin.data(), tokens(), dtype()};
}

int64_t TokenSpan::operator[](int64_t i) const {
  return with_type(dtype_, [&](auto type) { return static_cast<int64_t>(load<decltype(type)>(data_, i)); });
}

void TokenSpan::copy_to(int64_t* out) const {
  with_type(dtype_, [&](auto type) {
    for (int64_t i = 0; i < size_; ++i) out[i] = static_cast<int64_t>(load<decltype(type)>(data_, i));
  });
}

void TokenSpan::copy_to(int32_t* out) const {
  with_type(dtype_, [&](auto type) {
    using T = decltype(type);
    for (int64_t i = 0; i < size_; ++i) {
      const T id = load<T>(data_, i);
      if constexpr (sizeof(T) > 4)
        if (static_cast<int64_t>(id) != static_cast<int32_t>(id))
          fail(ErrorKind::kData, "token id ", id, " does not fit 32 bits");
      out[i] = static_cast<int32_t>(id);
    }
  });
}

}  // namespace megalith
