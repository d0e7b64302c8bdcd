#include "libcore/generate/text_stream.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace megalith {
namespace {

constexpr size_t kContext =
    8;  // number of tokens of context: new tokens must not be decoded as the beginning of a text
constexpr size_t kMaxPending = 16;  // maximum number of tokens held back because their text is uncertain
/// The maximum number of bytes, and so of tokens, that may be missing in a character, which has at most four
/// bytes.
constexpr size_t kCharacter = 3;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_known(const Tokenizer& tokenizer, int32_t id) {
  return id >= 0 && id < tokenizer.vocab_size();
}

}  // namespace

std::string text_of_known(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<int32_t> known;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(known),
               [&](int32_t id) { return is_known(tokenizer, id); });
  return tokenizer.decode(known);
}

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                       std::vector<std::string> stops)
    : tokenizer_(tokenizer), stops_(std::move(stops)) {
  const size_t kept = std::min(prompt.size(), kContext);
  ids_.assign(prompt.end() - static_cast<std::ptrdiff_t>(kept), prompt.end());
  known_ = ids_.size();
}

std::string TextStream::push(int32_t token) {
  if (stopped_ || !is_known(tokenizer_, token)) return {};
  ids_.push_back(token);
  return release(false);
}

std::string TextStream::finish() {
  if (stopped_) return {};
  return release(true);
}

std::string TextStream::release(bool all) {
  const std::string before = tokenizer_.decode(std::span(ids_).first(known_));
  const std::string both = tokenizer_.decode(ids_);
  if (const size_t taken = all ? ids_.size() : certain_tokens(both); taken > known_) {
    const std::string text = taken == ids_.size() ? both : tokenizer_.decode(std::span(ids_).first(taken));
    // The comparison includes the context, because it may end inside a character that the new tokens
    // complete.
    if (text.starts_with(before))
      held_ += text.substr(before.size());
    else
      held_ += tokenizer_.decode(std::span(ids_).subspan(known_, taken - known_));
    const size_t forgotten = taken - std::min(taken, kContext);
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(forgotten));
    known_ = taken - forgotten;
  }
  std::string out = held_.substr(0, certain(!all));
  held_.erase(0, out.size());
  for (const std::string& stop : stops_) stopped_ = stopped_ || held_.starts_with(stop);
  return out;
}

size_t TextStream::certain_tokens(const std::string& both) const {
  if (!both.ends_with(kReplacement)) return ids_.size();
  if (ids_.size() - known_ <= kMaxPending) return known_;
  // These are too many tokens for one incomplete character, so only the last ones can belong to it. The cut
  // between certain and uncertain tokens must not be inside a whole character: the text before such a cut is
  // not a prefix of `both`.
  for (size_t taken = ids_.size() - kCharacter; taken > known_; --taken)
    if (both.starts_with(tokenizer_.decode(std::span(ids_).first(taken)))) return taken;
  return ids_.size();
}

size_t TextStream::certain(bool more_comes) const {
  size_t sure = held_.size();
  for (const std::string& stop : stops_) {
    sure = std::min(sure, held_.find(stop));
    for (size_t length = more_comes ? std::min(stop.size() - 1, held_.size()) : 0; length > 0; --length)
      if (held_.ends_with(std::string_view(stop).substr(0, length))) {
        sure = std::min(sure, held_.size() - length);
        break;
      }
  }
  return sure;
}

}  // namespace megalith
