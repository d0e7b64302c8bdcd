#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/data/preprocess_stages.h"

namespace megalith {
namespace {

constexpr size_t kLongText = size_t{1} << 16;  // tokenized in pieces

bool is_blank(std::span<const char> line) {
  return std::all_of(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t'; });
}

}  // namespace

std::optional<int32_t> eod_of(const PreprocessConfig& config, const Tokenizer& tokenizer) {
  return config.append_eod ? std::optional(tokenizer.eod()) : std::nullopt;
}

int32_t greatest(int32_t so_far, std::span<const int32_t> ids) {
  for (const int32_t id : ids) so_far = std::max(so_far, id);
  return so_far;
}

DocumentEncoder::DocumentEncoder(const PreprocessConfig& config, const Tokenizer& tokenizer)
    : parser_(config.json_keys),
      tokenizer_(tokenizer),
      dtype_(optimal_dtype(tokenizer.vocab_size())),
      eod_(eod_of(config, tokenizer)),
      stop_at_bad_(config.on_error == OnError::kStrict),
      keys_(config.json_keys.size()) {}

void DocumentEncoder::encode(DocumentChunk& chunk) {
  chunk.keys.resize(keys_);
  for (KeyTokens& key : chunk.keys) key.clear();
  chunk.bad.clear();
  chunk.blank_lines = chunk.longest_line = 0;
  for (size_t i = 0; i < chunk.lines.lines(); ++i) {
    encode_line(chunk, i);
    if (!chunk.bad.empty() && (stop_at_bad_ || !chunk.bad.back().fault)) break;
  }
}

void DocumentEncoder::encode_line(DocumentChunk& chunk, size_t i) {
  const std::span<char> line = chunk.lines.line(i);
  chunk.longest_line = std::max(chunk.longest_line, line.size());
  if (is_blank(line)) {
    ++chunk.blank_lines;
    return;
  }
  if (std::optional<DocumentProblem> problem = parser_.parse(line)) {
    chunk.bad.push_back(
        {i, chunk.lines.skipped(i) + problem->byte, problem->fault, std::move(problem->detail)});
    return;
  }
  try {
    for (size_t k = 0; k < keys_; ++k) {
      const std::span<const std::string_view> texts = parser_.texts(k);
      if (line.size() > kLongLine)
        chunk.keys[k].long_document.emplace(texts.begin(), texts.end());
      else
        encode_document(texts, chunk.keys[k]);
    }
  } catch (const Error& error) {
    chunk.bad.push_back({.line = i, .detail = error.what()});
  }
}

void DocumentEncoder::encode_document(std::span<const std::string_view> texts, KeyTokens& out) {
  const size_t first = out.lengths.size();
  for (const std::string_view text : texts) {
    const size_t before = out.tokens.size();
    encode_text(text, out);
    const size_t length = (out.tokens.size() - before) / size_of(dtype_);
    if (length > 0) out.lengths.push_back(static_cast<int32_t>(length));  // at most a long line's
  }
  const size_t sequences = out.lengths.size() - first;
  if (eod_ && sequences > 0) {
    add_ids({&*eod_, 1}, out);
    ++out.lengths.back();
  }
  out.sequences.push_back(static_cast<int32_t>(sequences));
}

void DocumentEncoder::encode_text(std::string_view text, KeyTokens& out) {
  if (text.size() > kLongText) {
    tokenizer_.encode_in_pieces(text, [&](std::span<const int32_t> ids) { add_ids(ids, out); });
  } else {
    ids_.clear();
    tokenizer_.encode(text, ids_);
    add_ids(ids_, out);
  }
}

void DocumentEncoder::add_ids(std::span<const int32_t> ids, KeyTokens& out) const {
  if (const std::optional<int32_t> bad = narrow_ids(ids, dtype_, out.tokens))
    fail(ErrorKind::kData, "token id ", *bad, " does not fit ", name_of(dtype_),
         "; the tokenizer's vocabulary is larger than it says");
  out.max_id = greatest(out.max_id, ids);
}

}  // namespace megalith
