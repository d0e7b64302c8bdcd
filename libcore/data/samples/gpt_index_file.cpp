#include "libcore/data/samples/gpt_index_file.h"

#include <memory>
#include <span>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/gpt_index_writer.h"
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

Header header_of(const GptIndexPlan& plan) {
  return {.documents = plan.documents,
          .samples = 2 * (plan.pieces + 1),
          .shuffle = plan.pieces,
          .wide_samples = plan.wide_samples ? 1 : 0,
          .wide_shuffle = plan.wide_shuffle ? 1 : 0,
          .epochs = plan.epochs,
          .last_epoch_apart = plan.apart >= 0 ? 1 : 0,
          .zero = 0};
}

/// The arrays of an index in a kept file.
class KeptOut {
 public:
  explicit KeptOut(ArrayWriter& out) : out_(out) {}
  template <class T>
  void begin(const char*, int64_t, int64_t) {}
  template <class T>
  void add(std::span<const T> part) {
    out_.add(part);
  }
  void end() { out_.end_array(); }

 private:
  ArrayWriter& out_;
};

void write_index(const IndexedDataset& data, const GptSpec& spec, CachedFile::Writer& file) {
  GptIndexMaker maker(data, spec);
  ArrayWriter arrays(file, header_of(maker.plan()));
  KeptOut out(arrays);
  GptIndexWriter(maker, out).write();
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

CachedFile file_of(const IndexedDataset& data, const GptSpec& spec, const std::string& folder) {
  return {folder, "gpt-index", kForm, source_of(data, spec)};
}

}  // namespace

bool has_kept_gpt_index(const IndexedDataset& data, const GptSpec& spec, const std::string& folder) {
  return file_of(data, spec, folder).is_there();
}

GptIndex kept_gpt_index(const IndexedDataset& data, const GptSpec& spec, const std::string& folder) {
  const CachedFile file = file_of(data, spec, folder);
  return kept_index(
      file, index_in, [&] { return build_gpt_index(data, spec); },
      [&](CachedFile::Writer& writer) { write_index(data, spec, writer); });
}

}  // namespace megalith
