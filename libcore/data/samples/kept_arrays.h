#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/shared_array.h"
#include "libcore/io/cache/build_cache.h"

namespace megalith {

/// Where each array of a kept index begins: at a multiple of so many bytes, so that it can be used as mapped.
constexpr size_t kArrayAlign = 64;

/// Puts `values` after `out`, and zeros up to the next array's place.
template <class T>
void append_array(std::string& out, std::span<const T> values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  out.resize((out.size() + kArrayAlign - 1) / kArrayAlign * kArrayAlign);
}

/// Reads what append_array() wrote after a header of `header` bytes; the arrays keep the file mapped. The
/// contents' hash was right, so they are what was written; kInternal where they are not.
class KeptArrays {
 public:
  KeptArrays(std::shared_ptr<const CachedFile::Contents> file, size_t header)
      : file_(std::move(file)), at_(header) {}

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

}  // namespace megalith
