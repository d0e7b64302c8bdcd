#include "libcore/text/formats/pretoken_stream.h"

#include <array>

#include "libcore/base/utf8.h"

namespace megalith {

void PretokenStream::add(std::string_view part) {
  held_ += part;
  if (giant_) continue_giant(look_ahead_);
  if (giant_ || held_.size() < kPartBytes) return;
  if (const size_t end = last_end(); end > 0) {
    take_.text(std::string_view(held_).substr(0, end));
    held_.erase(0, end);
  }
  if (held_.size() > kLongText + 2 * look_ahead_) begin_giant();
}

void PretokenStream::finish() {
  if (giant_) continue_giant(0);
  if (giant_) {
    giant_->finish();
    giant_.reset();
  }
  if (!held_.empty()) take_.text(held_);
  held_.clear();
}

void PretokenStream::begin_giant() {
  giant_.emplace(core_.long_pretoken(take_.ids));
  add_to_giant(character_begin(held_, held_.size() - look_ahead_));
}

void PretokenStream::continue_giant(size_t look_ahead) {
  const size_t end = giant_end(look_ahead);
  if (end < held_.size() || look_ahead == 0)
    add_to_giant(end);
  else if (held_.size() > look_ahead)
    return add_to_giant(character_begin(held_, held_.size() - look_ahead));
  else
    return;
  if (held_.empty()) return;
  giant_->finish();
  giant_.reset();
}

void PretokenStream::add_to_giant(size_t bytes) {
  if (bytes == 0) return;
  const std::string_view text = std::string_view(held_).substr(0, bytes);
  giant_->add(text);
  before_ = text.substr(character_begin(text, text.size() - 1));
  held_.erase(0, bytes);
}

/// Where in held_ the pretoken in giant_ ends; held_.size() if that is not known yet.
size_t PretokenStream::giant_end(size_t look_ahead) const {
  std::array<uint32_t, kMinEnds> ends;
  const std::string text = before_ + held_;
  core_.find_pretokens()(text, ends);
  return ends[0] + look_ahead <= text.size() ? ends[0] - before_.size() : held_.size();
}

/// Where the last pretoken of held_ begins, as far as that is known; 0 if there is only one.
size_t PretokenStream::last_end() const {
  std::array<uint32_t, 4 * kMinEnds> ends;
  size_t begin = 0, last = 0;
  while (begin < held_.size()) {
    const size_t count = core_.find_pretokens()(std::string_view(held_).substr(begin), ends);
    for (size_t i = 0; i < count; ++i) {
      if (begin + ends[i] + look_ahead_ > held_.size()) return last;
      last = begin + ends[i];
    }
    begin = last;
  }
  return last;
}

}  // namespace megalith
