#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/data/indexed_dataset.h"
#include "libcore/data/sidecar.h"

namespace megalith {
namespace {

std::string with_folder(std::string prefix) {
  const std::filesystem::path folder = std::filesystem::path(prefix).parent_path();
  if (!folder.empty()) make_directories(folder);
  return prefix;
}

template <class T>
void write_value(AtomicFile& file, T value) {
  file.write(&value, sizeof(T));
}

template <class T>
void write_array(AtomicFile& file, const std::vector<T>& values) {
  file.write(values.data(), values.size() * sizeof(T));
}

/// An open file, for the kernel's copy.
struct Descriptor {
  explicit Descriptor(const std::string& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd < 0) fail(ErrorKind::kIo, path, ": cannot open: ", std::strerror(errno));
  }
  ~Descriptor() { ::close(fd); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd;
};

/// Bytes of `source` that the kernel copied to the end of `out`: all of them, or fewer where it cannot copy
/// between these two places.
size_t copy_in_kernel(const MappedFile& source, AtomicFile& out) {
  out.flush();
  const Descriptor in(source.path());
  size_t done = 0;
  while (done < source.size()) {
    const ssize_t n = ::copy_file_range(in.fd, nullptr, out.descriptor(), nullptr, source.size() - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) break;
    if (n < 0) fail(ErrorKind::kIo, out.path(), ": cannot copy ", source.path(), ": ", std::strerror(errno));
    if (n == 0) break;  // some file systems say so where they cannot copy
    done += static_cast<size_t>(n);
  }
  return done;
}

}  // namespace

struct IndexedDatasetWriter::State {
  State(std::string name, IndexedDType type)
      : prefix(with_folder(std::move(name))), dtype(type), bin(prefix + ".bin"), idx(prefix + ".idx") {}

  std::string prefix;
  IndexedDType dtype;
  AtomicFile bin, idx;
  std::vector<int32_t> lengths;
  std::vector<int64_t> documents{0};
  int64_t tokens = 0;
  std::vector<std::byte> narrowed;  // one document in the file's type
};

IndexedDatasetWriter::IndexedDatasetWriter(std::string prefix, IndexedDType dtype)
    : state_(std::make_unique<State>(std::move(prefix), dtype)) {}

IndexedDatasetWriter::~IndexedDatasetWriter() = default;

int64_t IndexedDatasetWriter::sequences() const {
  return static_cast<int64_t>(state_->lengths.size());
}
int64_t IndexedDatasetWriter::documents() const {
  return static_cast<int64_t>(state_->documents.size()) - 1;
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
  if (sum != static_cast<int64_t>(ids.size()) || is_floating(s.dtype))
    fail(ErrorKind::kInternal, s.prefix, ": ", ids.size(), " ids of ", sum, " were added as ",
         name_of(s.dtype));
  with_type(s.dtype, [&](auto type) {
    using T = decltype(type);
    s.narrowed.resize(ids.size() * sizeof(T));
    for (size_t i = 0; i < ids.size(); ++i) {
      const T id = static_cast<T>(ids[i]);
      if (static_cast<int64_t>(id) != ids[i])
        fail(ErrorKind::kData, s.prefix, ": token id ", ids[i], " of document ", documents(),
             " does not fit ", name_of(s.dtype), "; the tokenizer's vocabulary is larger than it says");
      std::memcpy(s.narrowed.data() + i * sizeof(T), &id, sizeof(T));
    }
  });
  s.bin.write(s.narrowed.data(), s.narrowed.size());
  s.lengths.insert(s.lengths.end(), lengths.begin(), lengths.end());
  s.documents.push_back(sequences());
  s.tokens += sum;
}

void IndexedDatasetWriter::append(const IndexedDataset& other) {
  State& s = *state_;
  if (other.dtype() != s.dtype)
    fail(ErrorKind::kData, other.prefix(), ": tokens are ", name_of(other.dtype()),
         ", those of the datasets before it ", name_of(s.dtype),
         "; they were made with different tokenizers: preprocess them with the same one");
  const size_t copied = copy_in_kernel(other.bin(), s.bin);
  if (copied < other.bin().size()) s.bin.write(other.bin().data() + copied, other.bin().size() - copied);
  const int64_t base = sequences();
  for (int64_t i = 0; i < other.sequences(); ++i) s.lengths.push_back(other.sequence_length(i));
  for (int64_t i = 1; i <= other.documents(); ++i) s.documents.push_back(base + other.document_begin(i));
  s.tokens += other.tokens();
}

void IndexedDatasetWriter::finish() {
  State& s = *state_;
  s.idx.write(kIndexedMagic.data(), kIndexedMagic.size());
  write_value(s.idx, kIndexedVersion);
  write_value(s.idx, static_cast<uint8_t>(s.dtype));
  write_value(s.idx, static_cast<uint64_t>(s.lengths.size()));
  write_value(s.idx, static_cast<uint64_t>(s.documents.size()));
  write_array(s.idx, s.lengths);
  int64_t pointer = 0;
  for (const int32_t n : s.lengths) {
    write_value(s.idx, pointer);
    pointer += n * static_cast<int64_t>(size_of(s.dtype));
  }
  write_array(s.idx, s.documents);
  s.bin.flush();  // a full disk shows here, while the old files are still in place
  s.idx.flush();
  remove_sidecar(s.prefix);
  if (::unlink(s.idx.path().c_str()) != 0 && errno != ENOENT)
    fail(ErrorKind::kIo, s.idx.path(), ": cannot replace: ", std::strerror(errno));
  s.bin.commit();
  s.idx.commit();
}

}  // namespace megalith
