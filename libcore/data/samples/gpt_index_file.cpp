#include "libcore/data/samples/gpt_index_file.h"

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "libcore/base/error.h"
#include "libcore/hash/sha256.h"
#include "libcore/io/cache/build_cache.h"

namespace megalith {
namespace {

constexpr int kForm = 1;
constexpr size_t kAlign = 64;

/// Before the arrays, each of which begins at a multiple of kAlign.
struct alignas(kAlign) Header {
  int64_t documents, samples, shuffle;  // elements
  int64_t wide_samples, wide_shuffle;   // 1: of 64 bits
  int64_t epochs, last_epoch_apart;
  int64_t zero;
};

/// All that an index depends on but the bytes themselves.
std::string source_of(const IndexedDataset& data, const GptSpec& spec) {
  return sha256_hex(concat(data.file_key(), '|', spec.range.begin, '-', spec.range.end, '|',
                           spec.samples.value_or(-1), '|', spec.seq_length, '|', spec.seed, '|',
                           spec.extra_token, spec.drop_last));
}

template <class T>
void append(std::string& out, const SharedArray<T>& values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  out.resize((out.size() + kAlign - 1) / kAlign * kAlign);
}

std::string contents_of(const GptIndex& index) {
  const auto size = [](const auto& v) { return static_cast<int64_t>(v.size()); };
  const Header header{.documents = size(index.documents),
                      .samples = std::visit(size, index.samples),
                      .shuffle = std::visit(size, index.shuffle),
                      .wide_samples = static_cast<int64_t>(index.samples.index()),
                      .wide_shuffle = static_cast<int64_t>(index.shuffle.index()),
                      .epochs = index.epochs,
                      .last_epoch_apart = index.last_epoch_apart ? 1 : 0,
                      .zero = 0};
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  append(out, index.documents);
  std::visit([&](const auto& v) { append(out, v); }, index.samples);
  std::visit([&](const auto& v) { append(out, v); }, index.shuffle);
  return out;
}

/// Reads arrays one after the other. The contents' hash was right, so they are what was written.
class Arrays {
 public:
  explicit Arrays(std::shared_ptr<const CachedFile::Contents> file) : file_(std::move(file)) {}
  template <class T>
  SharedArray<T> next(int64_t elements) {
    const size_t bytes = static_cast<size_t>(elements) * sizeof(T);
    if (elements < 0 || at_ + bytes > file_->text().size())
      fail(ErrorKind::kInternal, "a kept index ends too early");
    const auto* const first = reinterpret_cast<const T*>(file_->text().data() + at_);
    at_ = (at_ + bytes + kAlign - 1) / kAlign * kAlign;
    return {std::span(first, static_cast<size_t>(elements)), file_};
  }

 private:
  std::shared_ptr<const CachedFile::Contents> file_;
  size_t at_ = sizeof(Header);
};

GptIndex index_in(const std::shared_ptr<const CachedFile::Contents>& file) {
  Header header{};
  if (file->text().size() < sizeof header) fail(ErrorKind::kInternal, "a kept index without its header");
  std::memcpy(&header, file->text().data(), sizeof header);
  Arrays arrays(file);
  GptIndex index;
  index.documents = arrays.next<int32_t>(header.documents);
  if (header.wide_samples == 1)
    index.samples = arrays.next<int64_t>(header.samples);
  else
    index.samples = arrays.next<int32_t>(header.samples);
  if (header.wide_shuffle == 1)
    index.shuffle = arrays.next<int64_t>(header.shuffle);
  else
    index.shuffle = arrays.next<uint32_t>(header.shuffle);
  index.epochs = header.epochs;
  index.last_epoch_apart = header.last_epoch_apart == 1;
  return index;
}

}  // namespace

GptIndex kept_gpt_index(const IndexedDataset& data, const GptSpec& spec, const std::string& folder) {
  const CachedFile file(folder, "gpt-index", kForm, source_of(data, spec));
  if (const auto kept = file.load()) return index_in(kept);
  GptIndex index = build_gpt_index(data, spec);
  file.store(contents_of(index));
  if (const auto kept = file.load())
    return index_in(kept);  // so that all ranks of a machine share its memory
  return index;
}

}  // namespace megalith
