#include "libcore/text/id_buffer.h"

#include <algorithm>

#include "libcore/base/error.h"

namespace megalith {

std::vector<std::span<const char>> IdBuffer::parts(size_t from, size_t to) const {
  std::vector<std::span<const char>> found;
  size_t begin = 0;
  for (const Part& part : parts_) {
    const size_t first = std::max(from, begin), last = std::min(to, begin + part.bytes);
    if (first < last) found.emplace_back(part.data + (first - begin), last - first);
    begin += part.bytes;
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
  const auto is_kept = [](const Part& part) {
    return part.own.capacity() > 0 && part.own.capacity() <= BufferPool::kBytes;
  };
  while (parts_.size() > 1 || (!parts_.empty() && !is_kept(parts_[0]))) end_part();
  if (!parts_.empty()) parts_[0].bytes = 0;
  bytes_ = 0;
}

void IdBuffer::truncate(size_t ids) {
  const size_t bytes = ids * width_;
  while (bytes_ > bytes && bytes_ - parts_.back().bytes >= bytes) end_part();
  if (bytes_ > bytes) parts_.back().bytes -= bytes_ - bytes;
  bytes_ = bytes;
}

void IdBuffer::append(std::span<const int32_t> ids) {
  if (width_ == sizeof(int32_t)) {
    int32_t* const out = extend<int32_t>(ids.size());
    return finish(std::copy(ids.begin(), ids.end(), out));
  }
  uint16_t* out = extend<uint16_t>(ids.size());
  for (const int32_t id : ids) {
    if (id < 0 || id > UINT16_MAX)
      fail(ErrorKind::kData, "token id ", id,
           " does not fit 2 bytes; the tokenizer's vocabulary is larger than it says");
    *out++ = static_cast<uint16_t>(id);
  }
  finish(out);
}

void IdBuffer::begin_part(size_t min_bytes) {
  Part& part = parts_.emplace_back();
  if (pool_ && min_bytes <= BufferPool::kBytes) {
    part.lent = pool_->take();
    part.data = part.lent.data;
    part.capacity = BufferPool::kBytes;
  } else {
    part.own.reserve(std::max(min_bytes, BufferPool::kBytes));
    part.data = part.own.data();
    part.capacity = part.own.capacity();
  }
}

void IdBuffer::end_part() {
  const Part& part = parts_.back();
  bytes_ -= part.bytes;
  if (part.lent.data) pool_->give(part.lent);
  parts_.pop_back();
}

}  // namespace megalith
