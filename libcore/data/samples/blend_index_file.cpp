#include "libcore/data/samples/blend_index_file.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/blend_order.h"
#include "libcore/data/samples/kept_arrays.h"
#include "libcore/hash/sha256.h"
#include "libcore/io/cache/build_cache.h"

namespace megalith {
namespace {

constexpr int kForm = 1;

/// The beginning of the file, before the arrays.
struct alignas(kArrayAlign) Header {
  int64_t samples;
  std::array<int64_t, 7> zeros;
};

/// The bytes of `values`, for the file's key. Decimal text might hide a difference in a weight's last bit,
/// and that bit can change the blend.
template <class T>
std::string bits_of(std::span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

/// Writes the index with only a block of it in memory: first all datasets, then all sample numbers, which
/// are counted again from the datasets.
void write_index(BlendOrder order, int64_t size, CachedFile::Writer& file) {
  constexpr int64_t kBlock = int64_t{1} << 16;
  ArrayWriter out(file, Header{.samples = size, .zeros = {}});
  std::vector<int16_t> dataset;
  std::vector<int64_t> sample;
  const auto resize_at = [&](int64_t done) {
    dataset.resize(static_cast<size_t>(std::min(kBlock, size - done)));
    sample.resize(dataset.size());
  };
  for (int64_t done = 0; done < size; done += kBlock) {
    resize_at(done);
    order.next(dataset, sample);
    out.add(std::span<const int16_t>(dataset));
  }
  out.end_array();
  std::vector<int64_t> taken(order.taken().size(), 0);
  for (int64_t done = 0; done < size; done += kBlock) {
    resize_at(done);
    const uint64_t place = sizeof(Header) + static_cast<uint64_t>(done) * sizeof(int16_t);
    if (!file.read_back(place, dataset.data(), dataset.size() * sizeof(int16_t))) return;
    for (size_t i = 0; i < dataset.size(); ++i) sample[i] = taken[static_cast<size_t>(dataset[i])]++;
    out.add(std::span<const int64_t>(sample));
  }
  out.end_array();
}

BlendIndex index_in(const std::shared_ptr<const CachedFile::Contents>& file) {
  Header header{};
  KeptArrays arrays(file, header);
  BlendIndex index;
  index.dataset = arrays.next<int16_t>(header.samples);
  index.sample = arrays.next<int64_t>(header.samples);
  return index;
}

CachedFile file_by_weights(std::span<const double> weights, int64_t size, const std::string& folder) {
  return {folder, "blend-index", kForm, sha256_hex(concat("weights|", size, '|', bits_of(weights)))};
}

CachedFile file_exhaustively(std::span<const int64_t> sizes, const std::string& folder) {
  return {folder, "blend-index", kForm, sha256_hex(concat("sizes|", bits_of(sizes)))};
}

BlendIndex kept(const CachedFile& file, const BlendOrder& order, int64_t size) {
  return kept_index(
      file, index_in, [&] { return blend_in_memory(order, size); },
      [&](CachedFile::Writer& writer) { write_index(order, size, writer); });
}

}  // namespace

BlendIndex kept_blend_by_weights(std::span<const double> weights, int64_t size, const std::string& folder) {
  return kept(file_by_weights(weights, size, folder), BlendOrder::by_weights(weights), size);
}

BlendIndex kept_blend_exhaustively(std::span<const int64_t> sizes, const std::string& folder) {
  return kept(file_exhaustively(sizes, folder), BlendOrder::exhaustive(sizes),
              std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
}

bool has_kept_blend_by_weights(std::span<const double> weights, int64_t size, const std::string& folder) {
  return file_by_weights(weights, size, folder).is_there();
}

bool has_kept_blend_exhaustively(std::span<const int64_t> sizes, const std::string& folder) {
  return file_exhaustively(sizes, folder).is_there();
}

}  // namespace megalith
