#pragma once

#include <algorithm>
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
#include "libcore/io/streams/stop_signal.h"

namespace megalith {

/// Each array of a kept index begins at a multiple of this many bytes, so that it can be used directly in the
/// mapped file.
constexpr size_t kArrayAlign = 64;

/// Writes arrays one after another, each in any number of parts. Throws Stopped if a StopSignal exists and
/// receives a signal.
class ArrayWriter {
 public:
  /// `header` is trivially copyable and a multiple of kArrayAlign long.
  template <class Header>
  ArrayWriter(CachedFile::Writer& file, const Header& header) : file_(file) {
    static_assert(sizeof(Header) % kArrayAlign == 0, "the first array must have its place, too");
    file_.write(&header, sizeof header);
  }
  template <class T>
  void add(std::span<const T> part) {
    constexpr size_t kWithoutPause = size_t{1} << 24;  // bytes: a disk may take seconds for a whole array
    const auto* const bytes = reinterpret_cast<const char*>(part.data());
    for (size_t done = 0; done < part.size_bytes(); done += kWithoutPause) {
      stop_if_asked();
      file_.write(bytes + done, std::min(kWithoutPause, part.size_bytes() - done));
    }
    bytes_ += part.size_bytes();
  }
  /// Writes zeros up to the place where the next array begins.
  void end_array() {
    static constexpr char kZeros[kArrayAlign] = {};
    file_.write(kZeros, (kArrayAlign - bytes_ % kArrayAlign) % kArrayAlign);
    bytes_ = 0;
  }

 private:
  CachedFile::Writer& file_;
  size_t bytes_ = 0;
};

/// Reads a header and the arrays that an ArrayWriter wrote after it. The arrays keep the file mapped.
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

/// Returns the index that `file` holds. If `file` does not exist, `write(writer)` writes it there part by
/// part, and `read` reads it back, so that the ranks of a machine share the file's memory. What cannot be
/// kept is made with `build`.
template <class Read, class Build, class Write>
auto kept_index(const CachedFile& file, const Read& read, const Build& build, const Write& write) {
  if (file.path().empty()) return build();
  if (const auto kept = file.load()) return read(kept);
  if (CachedFile::Writer writer(file); writer.stores()) {
    write(writer);
    if (writer.commit())
      if (const auto kept = file.load()) return read(kept);
  }
  return build();
}

}  // namespace megalith
