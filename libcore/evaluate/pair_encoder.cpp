#include "libcore/evaluate/pair_encoder.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/unicode/python_text.h"

namespace megalith {
namespace {

std::vector<int32_t> without_around(std::vector<int32_t> ids, const Tokenizer::Around& around) {
  ids.erase(ids.end() - static_cast<std::ptrdiff_t>(std::min(around.after.size(), ids.size())), ids.end());
  ids.erase(ids.begin(),
            ids.begin() + static_cast<std::ptrdiff_t>(std::min(around.before.size(), ids.size())));
  return ids;
}

}  // namespace

PairEncoder::PairEncoder(const Tokenizer& tokenizer, const GenerationFiles& files, int64_t length)
    : tokenizer_(tokenizer), first_(tokenizer.eod()), length_(length) {
  if (!files.bos_token.empty())
    if (const std::vector<int32_t> ids = encode_alone(files.bos_token); ids.size() == 1) first_ = ids[0];
  first_text_ = tokenizer.decode(std::span(&first_, 1));
}

std::vector<int32_t> PairEncoder::encode_alone(std::string_view text) const {
  std::vector<int32_t> ids;
  tokenizer_.encode(text, ids);
  return without_around(std::move(ids), tokenizer_.around());
}

// A text that begins with the first token's text gets nothing around it.
std::vector<int32_t> PairEncoder::encode(std::string_view text) const {
  if (!first_text_.empty() && text.starts_with(first_text_)) return encode_alone(text);
  std::vector<int32_t> ids;
  tokenizer_.encode(text, ids);
  return ids;
}

ScoredTokens PairEncoder::pair(std::string_view context, std::string_view continuation,
                               std::string_view where) {
  const std::string_view before = right_stripped(context);
  const std::string after = concat(context.substr(before.size()), continuation);
  ScoredTokens out;
  std::vector<int32_t> rest;
  if (context.empty()) {
    rest = encode_alone(after);
    if (rest.empty() || rest[0] != first_) out.tokens.push_back(first_);
  } else {
    if (context_ids_.empty() || context_ != before) {
      context_ = before;
      context_ids_ = encode(before);
    }
    out.tokens = context_ids_;
    const std::vector<int32_t> whole = encode(concat(before, after));
    const size_t common = std::min(out.tokens.size(), whole.size());
    rest.assign(whole.begin() + static_cast<std::ptrdiff_t>(common), whole.end());
    if (out.tokens.empty()) out.tokens.push_back(first_);
  }
  out.tokens.insert(out.tokens.end(), rest.begin(), rest.end());
  out.scored = static_cast<int64_t>(rest.size()) - (context.empty() && out.tokens == rest ? 1 : 0);
  if (out.scored < 1)
    fail(ErrorKind::kData, where, ": ", quote(shortened(continuation, 60)),
         " adds no token to its context; wanted a text that does");
  if (out.scored > length_)
    fail(ErrorKind::kData, where, ": ", quote(shortened(continuation, 60)), " has ", out.scored,
         " tokens, the model ", length_, " positions; shorten it");
  if (const int64_t excess = static_cast<int64_t>(out.tokens.size()) - (length_ + 1); excess > 0) {
    out.tokens.erase(out.tokens.begin(), out.tokens.begin() + excess);
    ++cut_;
  }
  return out;
}

std::vector<ScoredTokens> PairEncoder::windows(std::string_view text) const {
  const std::vector<int32_t> ids = encode(text);
  const auto size = static_cast<int64_t>(ids.size());
  const auto part = [&](int64_t begin, int64_t end) {
    return std::span(ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  };
  std::vector<ScoredTokens> out;
  for (int64_t done = 0; done < size;) {
    const int64_t end = std::min(size, done + length_);
    ScoredTokens window{.tokens = {}, .scored = end - done};
    if (done == 0) window.tokens.push_back(first_);
    const auto ids_of_window = part(done == 0 ? 0 : end - length_ - 1, end);
    window.tokens.insert(window.tokens.end(), ids_of_window.begin(), ids_of_window.end());
    out.push_back(std::move(window));
    done = end;
  }
  return out;
}

}  // namespace megalith
