#include "libcore/data/indexed/content.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"

namespace megalith {

bool cover(const std::vector<ContentPart>& parts, uint64_t file_size) {
  for (const ContentPart& part : parts) {
    if (part.bytes > file_size) return false;
    file_size -= part.bytes;
  }
  return file_size == 0;
}

ContentChecker::ContentChecker(std::string path, const std::vector<ContentPart>& parts, uint64_t file_size)
    : path_(std::move(path)), parts_(parts) {
  if (!cover(parts, file_size))
    fail(ErrorKind::kData, path_, ": its ", file_size,
         " bytes are more or fewer than were written; the file changed or is damaged: run preprocess again, "
         "or restore it");
}

void ContentChecker::update(const void* data, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    if (part_ == parts_.size()) fail(ErrorKind::kInternal, path_, ": ", bytes, " bytes beyond its last part");
    const ContentPart& part = parts_[part_];
    const auto n = static_cast<size_t>(std::min<uint64_t>(bytes, part.bytes - done_));
    hash_.update(at, n);
    at += n;
    bytes -= n;
    done_ += n;
    if (done_ < part.bytes) return;
    if (const std::string found = hex64(hash_.digest()); found != part.xxh64)
      fail(ErrorKind::kData, path_, ": its XXH64 is ", found, ", when written it was ", part.xxh64,
           " (bytes ", begin_, " to ", begin_ + part.bytes,
           "); the file changed or is damaged: run preprocess again, or restore it");
    begin_ += part.bytes;
    done_ = 0;
    hash_ = Xxh64();
    ++part_;
  }
}

}  // namespace megalith
