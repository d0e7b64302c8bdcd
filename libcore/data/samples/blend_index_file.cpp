#include "libcore/data/samples/blend_index_file.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

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
  int64_t samples;
  std::array<int64_t, 7> zeros;
};

/// The bytes of `values`, for the file's key. Decimal text might hide a difference in a weight's last bit,
/// and that bit can change the blend.
template <class T>
std::string bits_of(std::span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

std::string contents_of(const BlendIndex& index) {
  const Header header{.samples = static_cast<int64_t>(index.dataset.size()), .zeros = {}};
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  append_array(out, index.dataset.span());
  append_array(out, index.sample.span());
  return out;
}

BlendIndex index_in(const std::shared_ptr<const CachedFile::Contents>& file) {
  Header header{};
  KeptArrays arrays(file, header);
  BlendIndex index;
  index.dataset = arrays.next<int16_t>(header.samples);
  index.sample = arrays.next<int64_t>(header.samples);
  return index;
}

BlendIndex kept(const std::string& folder, std::string_view source,
                const std::function<BlendIndex()>& build) {
  const CachedFile file(folder, "blend-index", kForm, sha256_hex(source));
  return kept_index(file, index_in, build, contents_of);
}

}  // namespace

BlendIndex kept_blend_by_weights(std::span<const double> weights, int64_t size, const std::string& folder) {
  return kept(folder, concat("weights|", size, '|', bits_of(weights)),
              [&] { return blend_by_weights(weights, size); });
}

BlendIndex kept_blend_exhaustively(std::span<const int64_t> sizes, const std::string& folder) {
  return kept(folder, concat("sizes|", bits_of(sizes)), [&] { return blend_exhaustively(sizes); });
}

}  // namespace megalith
