#include <algorithm>
#include <cstdint>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/json/foreign_input.h"

namespace megalith {
namespace {

template <class Id>
int32_t max_id_of(const IdBuffer& ids) {
  Id max_id = 0;
  ids.each_part<Id>([&](std::span<const Id> part) {
    for (const Id id : part) max_id = std::max(max_id, id);
  });
  return ids.size() == 0 ? -1 : static_cast<int32_t>(max_id);
}

int32_t max_id(const IdBuffer& ids) {
  return ids.width() == 2 ? max_id_of<uint16_t>(ids) : max_id_of<int32_t>(ids);
}

int32_t checked_length(int64_t length) {
  if (length > INT32_MAX)
    fail(ErrorKind::kData, "a text has ", length, " tokens; a sequence holds at most ", INT32_MAX,
         ": split the text");
  return static_cast<int32_t>(length);
}

/// Moves the ids with index `first` and above to the disk.
void put_aside(KeyTokens& out, size_t first) {
  for (const std::span<const char> part : out.tokens.parts(first * out.tokens.width(), out.tokens.bytes()))
    out.long_tokens->append(part.data(), part.size());
  out.tokens.truncate(first);
}

}  // namespace

std::optional<int32_t> eod_of(const PreprocessConfig& config, const Tokenizer& tokenizer) {
  return config.append_eod ? std::optional(tokenizer.eod()) : std::nullopt;
}

DocumentEncoder::DocumentEncoder(const PreprocessConfig& config, const TextTools& tools)
    : config_(config),
      parser_(config.json_keys),
      tools_(tools),
      dtype_(optimal_dtype(tools.tokenizer.vocab_size())),
      eod_(eod_of(config, tools.tokenizer)),
      keys_(config.json_keys.size()),
      sizes_(keys_) {}

void DocumentEncoder::encode(DocumentBatch& batch) {
  // Many keys share the memory that one would have: each of them has only a part of a batch's text.
  constexpr size_t kSmallestPart = size_t{1} << 13;
  const size_t part = std::max(kSmallestPart, IdBuffer::kPartBytes / keys_);
  while (batch.keys.size() < keys_) batch.keys.emplace_back(dtype_, part);
  for (KeyTokens& key : batch.keys) key.clear();
  batch.long_line.reset();
  batch.hashes.clear();
  batch.bad.clear();
  batch.blank_lines = batch.short_documents = batch.longest_line = 0;
  for (size_t i = 0; i < batch.lines.lines(); ++i) {
    encode_line(batch, i);
    if (!batch.bad.empty() && config_.on_error == OnError::kStrict) break;
  }
  for (KeyTokens& key : batch.keys) key.max_id = std::max(key.max_id, max_id(key.tokens));
  take_memory(batch);
}

void DocumentEncoder::lend_memory(DocumentBatch& batch) {
  if (batch.lines.capacity() == 0) batch.lines.use_memory(std::exchange(spare_, {}));
}

void DocumentEncoder::take_memory(DocumentBatch& batch) {
  if (batch.bad.empty() && spare_.capacity() == 0 && batch.lines.capacity() <= kKeptBatch)
    spare_ = batch.lines.take_memory();
}

void DocumentEncoder::encode_line(DocumentBatch& batch, size_t i) {
  const std::span<char> line = batch.lines.line(i);
  batch.longest_line = std::max(batch.longest_line, line.size());
  if (trim({line.data(), line.size()}).empty()) {
    ++batch.blank_lines;
    return;
  }
  const auto limit = static_cast<size_t>(config_.max_document_bytes);
  if (limit > 0 && line.size() > limit) {
    batch.bad.push_back({.line = i,
                         .byte = batch.lines.skipped(i) + limit,
                         .fault = DocumentFault::kTooLong,
                         .detail = concat("the ", config_.unit(),
                                          " has more bytes than --max-document-bytes allows, ", limit)});
    return;
  }
  std::string raw = keep_raw(batch, i);
  if (std::optional<DocumentProblem> problem = parse(line)) {
    batch.bad.push_back({.line = i,
                         .byte = batch.lines.skipped(i) + problem->byte,
                         .fault = problem->fault,
                         .detail = std::move(problem->detail)});
    return;
  }
  if (config_.min_chars > 0 && too_short()) {
    ++batch.short_documents;
    return;
  }
  if (!config_.dedup_write.empty()) {
    batch.hashes.push_back(hash());
    return;
  }
  mark_sizes(batch);
  try {
    encode_texts(batch, line.size());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    take_back(batch);
    batch.bad.push_back({.line = i,
                         .byte = 0,
                         .fault = DocumentFault::kRefused,
                         .detail = error.what(),
                         .raw = std::move(raw)});
    return;
  }
  if (config_.dedup == Dedup::kExact) batch.hashes.push_back(hash());
}

std::optional<DocumentProblem> DocumentEncoder::parse(std::span<char> line) {
  if (config_.text == TextUnit::kNone) return parser_.parse(line);
  text_ = {line.data(), line.size()};
  return check_text(text_);
}

/// The texts of the document for a key.
std::span<const std::string_view> DocumentEncoder::texts(size_t key) const {
  if (config_.text == TextUnit::kNone) return parser_.texts(key);
  return {&text_, 1};
}

/// Keeps a copy of a line as it was read, if parsing may change the line and it may have to be rejected.
/// Returns the copy. The copy of a long line is written to the disk instead, and an empty text is returned.
std::string DocumentEncoder::keep_raw(DocumentBatch& batch, size_t i) const {
  const std::string_view raw = batch.lines.raw_line(i);
  const size_t size = batch.lines.line(i).size();
  if (config_.rejects.empty() || size <= DocumentParser::kDecodedInPlace) return {};
  if (config_.text != TextUnit::kNone) return {};  // a text is not changed
  if (size <= kLongLine) return std::string(raw);
  batch.long_line = std::make_unique<ScratchFile>(parent_or_here(config_.rejects).string());
  batch.long_line->append(raw.data(), raw.size());
  return {};
}

void DocumentEncoder::encode_texts(DocumentBatch& batch, size_t line_bytes) {
  if (has_short_texts(line_bytes)) return encode_together(batch);
  for (size_t k = 0; k < keys_; ++k) {
    if (line_bytes > kLongLine)
      batch.keys[k].long_tokens =
          std::make_unique<ScratchFile>(parent_or_here(config_.output_prefix).string());
    encode_document(k, batch.keys[k]);
  }
}

/// Whether the line has several texts, short ones, or a text is cut into sentences, so that each call of the
/// tokenizer for one of them would cost more than their ids.
bool DocumentEncoder::has_short_texts(size_t line_bytes) const {
  constexpr size_t kShort = 1024;
  if (line_bytes > kLongLine) return false;
  if (tools_.splitter) return true;
  size_t count = 0;
  for (size_t k = 0; k < keys_; ++k) count += texts(k).size();
  return count > 1 && line_bytes / count < kShort;
}

/// Encodes the texts of all keys in one call for every kTogether bytes.
void DocumentEncoder::encode_together(DocumentBatch& batch) {
  constexpr size_t kTogether = size_t{1} << 16;
  forget_gathered();  // those of a document that the tokenizer refused
  for (size_t k = 0; k < keys_; ++k) {
    const bool sentences = config_.text == TextUnit::kNone && parser_.is_list(k);
    for (const std::string_view text : texts(k))
      tools_.each_sequence(text, sentences, [&](std::string_view sequence) {
        gathered_.push_back(sequence);
        gathered_keys_.push_back(k);
        gathered_bytes_ += sequence.size();
        if (gathered_bytes_ >= kTogether) encode_gathered(batch);
      });
  }
  encode_gathered(batch);
  for (size_t k = 0; k < keys_; ++k) end_document(k, batch.keys[k]);
}

/// Gives each key the ids of its texts.
void DocumentEncoder::encode_gathered(DocumentBatch& batch) {
  together_.clear();
  tools_.tokenizer.encode_all(gathered_, together_);
  size_t text = 0;
  int64_t length = 0;
  together_.each_part<int32_t>([&](std::span<const int32_t> ids) {
    while (!ids.empty()) {
      const auto n =
          static_cast<size_t>(std::find(ids.begin(), ids.end(), Tokenizer::kTextEnd) - ids.begin());
      KeyTokens& key = batch.keys[gathered_keys_[text]];
      key.tokens.append(ids.first(n));
      length += static_cast<int64_t>(n);
      if (n == ids.size()) return;  // the text continues in the next part
      if (length > 0) key.lengths.push_back(checked_length(length));
      length = 0;
      ++text;
      ids = ids.subspan(n + 1);
    }
  });
  forget_gathered();
}

void DocumentEncoder::forget_gathered() {
  gathered_.clear();
  gathered_keys_.clear();
  gathered_bytes_ = 0;
}

/// Ends the document of a key, whose ids are all in `out`.
void DocumentEncoder::end_document(size_t key, KeyTokens& out) const {
  const size_t sequences = out.lengths.size() - sizes_[key].lengths;
  if (eod_ && sequences > 0) {
    out.tokens.append({&*eod_, 1});
    out.lengths.back() = checked_length(int64_t{out.lengths.back()} + 1);
  }
  out.sequences.push_back(static_cast<int32_t>(sequences));
}

void DocumentEncoder::encode_document(size_t key, KeyTokens& out) {
  const size_t before = out.lengths.size(), first_id = out.tokens.size();
  const auto encode = [&](std::string_view text) {
    const int64_t length = encode_sequence(text, out, first_id);
    if (length > 0) out.lengths.push_back(checked_length(length));
  };
  const bool sentences = config_.text == TextUnit::kNone && parser_.is_list(key);
  for (const std::string_view text : texts(key)) tools_.each_sequence(text, sentences, encode);
  end_document(key, out);
  if (out.long_tokens) {
    if (eod_ && out.lengths.size() > before) out.max_id = std::max(out.max_id, *eod_);
    put_aside(out, first_id);
  }
}

/// Encodes a text, adds its ids to `out`, and returns their number. The document's ids begin at index
/// `first`; if its line is long, they are moved to the disk part by part.
int64_t DocumentEncoder::encode_sequence(std::string_view text, KeyTokens& out, size_t first) const {
  if (!out.long_tokens) {
    const size_t before = out.tokens.size();
    tools_.tokenizer.encode_to(text, out.tokens);
    return static_cast<int64_t>(out.tokens.size() - before);
  }
  int64_t length = 0;
  tools_.tokenizer.encode_in_parts(text, [&](std::span<const int32_t> ids) {
    for (const int32_t id : ids) out.max_id = std::max(out.max_id, id);
    out.tokens.append(ids);
    // Not for each sentence: a long text may have a hundred thousand of them.
    if (out.tokens.bytes() - first * out.tokens.width() >= IdBuffer::kPartBytes) put_aside(out, first);
    length += static_cast<int64_t>(ids.size());
  });
  return length;
}

bool DocumentEncoder::too_short() const {
  int64_t total = 0;
  for (size_t k = 0; k < keys_; ++k)
    for (const std::string_view text : texts(k)) total += count_code_points(text);
  return total < config_.min_chars;
}

ContentHash DocumentEncoder::hash() const {
  ContentHash all;
  for (size_t k = 0; k < keys_; ++k) all = content_hash(texts(k), all);
  return all;
}

void DocumentEncoder::mark_sizes(const DocumentBatch& batch) {
  for (size_t k = 0; k < keys_; ++k)
    sizes_[k] = {batch.keys[k].tokens.size(), batch.keys[k].lengths.size(), batch.keys[k].sequences.size()};
}

/// Rolls back a document whose tokenization failed, so that none of its tokens remain.
void DocumentEncoder::take_back(DocumentBatch& batch) const {
  for (size_t k = 0; k < keys_; ++k) {
    KeyTokens& key = batch.keys[k];
    key.tokens.truncate(sizes_[k].tokens);
    if (std::exchange(key.long_tokens, nullptr))
      // only this document's maximum: the earlier documents of the batch are not included yet
      key.max_id = -1;
    key.lengths.resize(sizes_[k].lengths);
    key.sequences.resize(sizes_[k].sequences);
  }
}

}  // namespace megalith
