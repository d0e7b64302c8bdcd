#include "libcore/data/samples/gpt_index_file.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/machine/huge_pages.h"
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

template <class T>
void write_samples(GptIndexMaker& maker, std::span<const int32_t> documents, ArrayWriter& out) {
  constexpr int64_t kRows = int64_t{1} << 16;
  std::vector<T> block;
  const int64_t rows = maker.plan().pieces + 1;
  for (int64_t done = 0; done < rows; done += kRows) {
    block.resize(2 * static_cast<size_t>(std::min(kRows, rows - done)));
    maker.samples(documents, std::span(block));
    out.add(std::span<const T>(block));
  }
  out.end_array();
}

template <class T>
void write_shuffle(GptIndexMaker& maker, ArrayWriter& out) {
  const HugePages room(static_cast<size_t>(maker.plan().pieces) * sizeof(T), HugePages::Backing::kReserved);
  maker.shuffle(room.as<T>());
  out.add(std::span<const T>(room.as<T>()));
  out.end_array();
}

/// Writes the index with only one of its arrays in memory.
void write_index(const IndexedDataset& data, const GptSpec& spec, CachedFile::Writer& file) {
  GptIndexMaker maker(data, spec);
  const GptIndexPlan& plan = maker.plan();
  ArrayWriter out(file, header_of(plan));
  {
    const HugePages room(static_cast<size_t>(plan.documents) * sizeof(int32_t),
                         HugePages::Backing::kReserved);
    const std::span<int32_t> documents = room.as<int32_t>();
    maker.documents(documents);
    out.add(std::span<const int32_t>(documents));
    out.end_array();
    if (plan.wide_samples)
      write_samples<int64_t>(maker, documents, out);
    else
      write_samples<int32_t>(maker, documents, out);
  }
  if (plan.wide_shuffle)
    write_shuffle<int64_t>(maker, out);
  else
    write_shuffle<uint32_t>(maker, out);
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
