#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/shared_array.h"
#include "libcore/io/cache/build_cache.h"

namespace megalith {

/// Each array of a kept index begins at a multiple of this many bytes, so that it can be used directly in the
/// mapped file.
constexpr size_t kArrayAlign = 64;

/// Appends `values`, and zeros up to the place where the next array begins.
template <class T>
void append_array(std::string& out, std::span<const T> values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  out.resize((out.size() + kArrayAlign - 1) / kArrayAlign * kArrayAlign);
}

/// Reads a header and the arrays that append_array() wrote after it. The arrays keep the file mapped.
/// CachedFile has checked the hash of the contents, so a wrong size is a bug: kInternal.
class KeptArrays {
 public:
  /// Reads the header, which is before the arrays, into `header`.
  template <class Header>
  KeptArrays(std::shared_ptr<const CachedFile::Contents> file, Header& header)
      : file_(std::move(file)), at_(sizeof header) {
    static_assert(sizeof(Header) % kArrayAlign == 0, "the first array must have its place, too");
    static_assert(std::is_trivially_copyable_v<Header>);
    if (file_->text().size() < sizeof header) fail(ErrorKind::kInternal, "a kept index without its header");
    std::memcpy(&header, file_->text().data(), sizeof header);
  }

  template <class T>
  SharedArray<T> next(int64_t elements) {
    const size_t bytes = static_cast<size_t>(elements) * sizeof(T);
    if (elements < 0 || at_ + bytes > file_->text().size())
      fail(ErrorKind::kInternal, "a kept index ends too early");
    const auto* const first = reinterpret_cast<const T*>(file_->text().data() + at_);
    at_ = (at_ + bytes + kArrayAlign - 1) / kArrayAlign * kArrayAlign;
    return {std::span(first, static_cast<size_t>(elements)), file_};
  }

 private:
  std::shared_ptr<const CachedFile::Contents> file_;
  size_t at_;
};

/// Returns the index that `file` holds. If `file` does not exist, builds the index with `build`, stores
/// `contents(index)` in the file, and returns the index that `read` reads back from it, so that the ranks of
/// a machine share the file's memory.
template <class Read, class Build, class Contents>
auto kept_index(const CachedFile& file, const Read& read, const Build& build, const Contents& contents) {
  if (const auto kept = file.load()) return read(kept);
  auto index = build();
  if (file.path().empty()) return index;
  file.store(contents(index));
  const auto kept = file.load();
  return kept ? read(kept) : std::move(index);
}

}  // namespace megalith
