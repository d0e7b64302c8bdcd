#include "libcore/data/samples/gpt_index_file.h"

#include <memory>
#include <variant>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/kept_arrays.h"
#include "libcore/hash/sha256.h"
#include "libcore/io/cache/build_cache.h"

namespace megalith {
namespace {

constexpr int kForm = 1;

/// The beginning of the file, before the arrays.
struct alignas(kArrayAlign) Header {
  int64_t documents, samples, shuffle;  // elements of each array
  int64_t wide_samples, wide_shuffle;   // 1: the array's elements have 64 bits; 0: 32
  int64_t epochs, last_epoch_apart;
  int64_t zero;
};

/// A hash of everything that determines an index. The dataset enters with its file_key(), not with its bytes.
std::string source_of(const IndexedDataset& data, const GptSpec& spec) {
  return sha256_hex(concat(data.file_key(), '|', spec.range.begin, '-', spec.range.end, '|',
                           spec.samples.value_or(-1), '|', spec.seq_length, '|', spec.seed, '|',
                           spec.extra_token, spec.drop_last));
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
  append_array(out, index.documents.span());
  std::visit([&](const auto& v) { append_array(out, v.span()); }, index.samples);
  std::visit([&](const auto& v) { append_array(out, v.span()); }, index.shuffle);
  return out;
}

GptIndex index_in(const std::shared_ptr<const CachedFile::Contents>& file) {
  Header header{};
  KeptArrays arrays(file, header);
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
  return kept_index(
      file, index_in, [&] { return build_gpt_index(data, spec); }, contents_of);
}

}  // namespace megalith
