#include "libcore/text/bpe/cache/pretoken_batch.h"

#include <cstring>

namespace megalith {

void PretokenBatch::add(std::string_view text, const FindPretokens& find) {
  if (text.empty()) return;
  // A text has at most one pretoken for each byte, and `find` wants room for kMinEnds.
  if (text.size() > text_.size() - size_ || text.size() + kMinEnds > kEnds - count_) flush();
  std::memcpy(text_.data() + size_, text.data(), text.size());
  std::string_view rest(text_.data() + size_, text.size());
  while (!rest.empty()) {
    const std::span<uint32_t> room = std::span(ends_).subspan(count_);
    const std::span<uint32_t> found = room.first(find(rest, room));
    const uint32_t size = found.back();
    for (uint32_t& end : found) end += static_cast<uint32_t>(size_);
    count_ += found.size();
    size_ += size;
    rest.remove_prefix(size);
  }
}

void PretokenBatch::put(std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    if (marks_.size() == kEnds) flush();  // a text may be nothing but added tokens
    marks_.push_back({.at = static_cast<uint32_t>(size_), .id = id});
  }
}

void PretokenBatch::flush() {
  if (count_ > 0)
    encoder_.encode({text_.data(), size_}, std::span(ends_).first(count_), out_, marks_);
  else
    for (const CachedEncoder::Mark& mark : marks_) out_.append({&mark.id, 1});
  size_ = count_ = 0;
  marks_.clear();
}

}  // namespace megalith
