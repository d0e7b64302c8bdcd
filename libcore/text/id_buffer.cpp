#include "libcore/text/id_buffer.h"

#include <algorithm>

#include "libcore/base/error.h"

namespace megalith {

std::vector<std::span<const char>> IdBuffer::parts(size_t from, size_t to) const {
  std::vector<std::span<const char>> found;
  size_t begin = 0;
  for (const ByteBuffer& part : parts_) {
    const size_t first = std::max(from, begin), last = std::min(to, begin + part.size());
    if (first < last) found.emplace_back(part.data() + (first - begin), last - first);
    begin += part.size();
  }
  return found;
}

std::vector<int32_t> IdBuffer::ids() const {
  std::vector<int32_t> all;
  all.reserve(size());
  const auto add = [&](auto ids) { all.insert(all.end(), ids.begin(), ids.end()); };
  if (width_ == sizeof(uint16_t))
    each_part<uint16_t>(add);
  else
    each_part<int32_t>(add);
  return all;
}

void IdBuffer::clear() {
  while (parts_.size() > 1 || (!parts_.empty() && parts_[0].capacity() > part_bytes_)) parts_.pop_back();
  if (!parts_.empty()) parts_[0].clear();
  bytes_ = 0;
}

void IdBuffer::truncate(size_t ids) {
  const size_t bytes = ids * width_;
  for (; bytes_ > bytes && bytes_ - parts_.back().size() >= bytes; parts_.pop_back())
    bytes_ -= parts_.back().size();
  if (bytes_ > bytes) parts_.back().truncate(parts_.back().size() - (bytes_ - bytes));
  bytes_ = bytes;
}

void IdBuffer::append(std::span<const int32_t> ids) {
  if (width_ == sizeof(int32_t)) {
    int32_t* const out = extend<int32_t>(ids.size());
    return finish(std::copy(ids.begin(), ids.end(), out));
  }
  uint16_t* out = extend<uint16_t>(ids.size());
  uint32_t bits = 0;  // checked after the loop, which is vectorized only without an exit
  for (const int32_t id : ids) {
    bits |= static_cast<uint32_t>(id);
    *out++ = static_cast<uint16_t>(id);
  }
  if (bits > UINT16_MAX)
    fail(ErrorKind::kData, "token id ",
         *std::find_if(ids.begin(), ids.end(), [](int32_t id) { return id < 0 || id > UINT16_MAX; }),
         " does not fit 2 bytes; the tokenizer's vocabulary is larger than it says");
  finish(out);
}

void IdBuffer::begin_part(size_t min_bytes) {
  parts_.emplace_back().reserve(std::max(min_bytes, part_bytes_));
}

}  // namespace megalith
