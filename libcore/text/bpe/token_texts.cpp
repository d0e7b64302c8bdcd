#include "libcore/text/bpe/token_texts.h"

#include <algorithm>
#include <cstring>

#include "libcore/text/tokenizer.h"

namespace megalith {

TokenTexts::TokenTexts(const std::vector<std::string>& texts) {
  std::vector<char> bytes;
  std::vector<uint32_t> ends;
  for (const std::string& text : texts) {
    bytes.insert(bytes.end(), text.begin(), text.end());
    ends.push_back(static_cast<uint32_t>(bytes.size()));
  }
  bytes_ = SharedArray(std::move(bytes));
  ends_ = SharedArray(std::move(ends));
}

bool TokenTexts::fit(const SharedArray<char>& bytes, const SharedArray<uint32_t>& ends) {
  return std::is_sorted(ends.begin(), ends.end()) &&
         (ends.empty() ? 0 : ends[ends.size() - 1]) == bytes.size();
}

namespace {

/// The bytes that append_texts() will write.
size_t bytes_of(const TokenTexts& texts, std::span<const int32_t> ids) {
  size_t bytes = 0;
  for (const int32_t id : ids) {
    if (static_cast<uint32_t>(id) < texts.size())
      bytes += texts[static_cast<size_t>(id)].size();
    else if (id == Tokenizer::kTextEnd)
      ++bytes;
    else
      refuse_token_id(id, texts.size());
  }
  return bytes;
}

}  // namespace

// Most texts are short: for them 16 bytes are copied without a call, of which those behind the text are
// written again.
void append_texts(const TokenTexts& texts, std::span<const int32_t> ids, ByteBuffer& out, char end) {
  constexpr size_t kShort = 16;
  const size_t before = out.size(), bytes = bytes_of(texts, ids);
  const SharedArray<char>& all = texts.bytes();
  // 16 bytes can be read of a text that begins before this place; with changes, texts may lie elsewhere.
  const char* const stop = texts.changed() || all.size() < kShort ? nullptr : all.end() - kShort + 1;
  char* at = out.extend(bytes + kShort);
  for (const int32_t id : ids) {
    if (id == Tokenizer::kTextEnd) {
      *at++ = end;
      continue;
    }
    const std::string_view text = texts[static_cast<size_t>(id)];
    if (text.size() <= kShort && text.data() < stop)
      std::memcpy(at, text.data(), kShort);
    else
      std::copy(text.begin(), text.end(), at);
    at += text.size();
  }
  out.truncate(before + bytes);
}

}  // namespace megalith
