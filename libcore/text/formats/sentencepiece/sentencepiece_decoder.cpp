#include "libcore/text/formats/sentencepiece/sentencepiece_decoder.h"

#include <algorithm>
#include <unordered_map>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"
#include "libcore/text/tokenizer.h"
#include "libcore/text/unicode/byte_alphabet.h"
#include "libcore/text/unicode/marked_bytes.h"

namespace megalith {
namespace {

using Table = SentencePieceTable;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

void append_with_blanks(std::string_view piece, std::string& out) {
  for (size_t at = piece.find(kBlankMark); at != std::string_view::npos; at = piece.find(kBlankMark)) {
    out.append(piece.substr(0, at)).append(" ");
    piece.remove_prefix(at + kBlankMark.size());
  }
  out += piece;
}

void append_bytes(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const size_t size = utf8_sequence(bytes);
    out += size > 0 ? bytes.substr(0, size) : kReplacement;
    bytes.remove_prefix(size > 0 ? size : 1);
  }
}

}  // namespace

SentencePieceDecoder::SentencePieceDecoder(const Table& table) {
  std::vector<std::string> texts;
  // If a control piece and another one have the same text, the library takes both for the control piece.
  std::unordered_map<std::string_view, uint8_t> reserved;
  for (const Table::Token& token : table.tokens) {
    texts.push_back(token.text);
    if (!token.is_normal()) reserved.emplace(token.text, static_cast<uint8_t>(token.type));
  }
  for (const Table::Token& token : table.tokens) {
    const auto found = reserved.find(token.text);
    parts_.types.push_back(found == reserved.end() ? static_cast<uint8_t>(token.type) : found->second);
  }
  parts_.texts = TokenTexts(texts);
  parts_.unknown_text = table.trainer.unknown_text;
  parts_.drops_first_blank = table.rules.add_space || table.rules.remove_extra_spaces;
  parts_.drops_every_first = table.rules.remove_extra_spaces;
}

std::string SentencePieceDecoder::decode(std::span<const int32_t> ids) const {
  std::string out, bytes;
  bool at_start = true, dropped = false;
  for (const int32_t id : ids) {
    const auto at = static_cast<size_t>(id);
    if (at >= parts_.texts.size()) refuse_token_id(id, parts_.texts.size());
    std::string_view piece = parts_.texts[at];
    if (parts_.types[at] == Table::kByte) {
      bytes += static_cast<char>(byte_of_token(piece));  // check_sentencepiece() has checked it
      continue;
    }
    append_bytes(bytes, out);
    bytes.clear();
    at_start = at_start && !dropped && out.empty();
    dropped = false;
    if (parts_.types[at] == Table::kControl) continue;
    if (parts_.types[at] == Table::kUnknown) {
      out += parts_.unknown_text;
      continue;
    }
    if (at_start && parts_.drops_first_blank && piece.starts_with(kBlankMark)) {
      piece.remove_prefix(kBlankMark.size());
      dropped = !parts_.drops_every_first;
    }
    append_with_blanks(piece, out);
  }
  append_bytes(bytes, out);
  return replace_invalid_utf8(out);
}

namespace {

// Stands for a piece without text, which ends a run of bytes; no text has this byte.
constexpr char kEmptyMark = '\xFE';

/// What the id of `at` adds to a text that has begun.
std::string added_text(const SentencePieceDecoder::Parts& parts, size_t at) {
  const std::string_view piece = parts.texts[at];
  if (parts.types[at] == Table::kByte) return marked_byte(static_cast<uint8_t>(byte_of_token(piece)));
  std::string text;
  if (parts.types[at] == Table::kUnknown)
    text = parts.unknown_text;
  else if (parts.types[at] != Table::kControl)
    append_with_blanks(piece, text);
  return text.empty() ? std::string(1, kEmptyMark) : text;
}

/// Appends texts that have marks. The next place of each kind of mark is kept: a search for both at each mark
/// would go through the rest of the texts again and again where one kind is rare.
void append_unmarked(std::string_view marked, std::string& out) {
  const size_t end = marked.size();
  size_t byte_at = marked.find(kByteMark), empty_at = marked.find(kEmptyMark);
  std::string bytes;
  for (size_t at = 0; at < end;) {
    const size_t stop = std::min({byte_at, empty_at, end});
    out += marked.substr(at, stop - at);
    std::string_view rest = marked.substr(stop);
    take_marked_bytes(rest, bytes);
    append_bytes(bytes, out);
    at = end - rest.size();
    if (at < end && marked[at] == kEmptyMark) ++at;
    if (byte_at < at) byte_at = marked.find(kByteMark, at);
    if (empty_at < at) empty_at = marked.find(kEmptyMark, at);
  }
}

bool has_mark(std::string_view text) {
  return text.find(kByteMark) != std::string_view::npos || text.find(kEmptyMark) != std::string_view::npos;
}

}  // namespace

std::optional<JoinedPieces> JoinedPieces::of(const SentencePieceDecoder& decoder) {
  const SentencePieceDecoder::Parts& parts = decoder.parts();
  if (valid_utf8_prefix(parts.unknown_text) != parts.unknown_text.size()) return std::nullopt;
  std::vector<std::string> texts(parts.texts.size());
  for (size_t at = 0; at < texts.size(); ++at) texts[at] = added_text(parts, at);
  JoinedPieces made(parts);
  made.texts_ = TokenTexts(texts);
  return made;
}

/// Appends the first pieces of a text, from which a blank is dropped. Returns the number of ids that this
/// covers, with those before them that have no text.
size_t JoinedPieces::append_beginning(std::span<const int32_t> ids, ByteBuffer& out) const {
  if (!parts_->drops_first_blank) return 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto at = static_cast<size_t>(ids[i]);
    if (at >= texts_.size()) refuse_token_id(ids[i], texts_.size());
    const std::string_view text = texts_[at];
    if (text.front() == kEmptyMark) continue;
    const uint8_t type = parts_->types[at];
    const bool drops =
        type != Table::kByte && type != Table::kUnknown && parts_->texts[at].starts_with(kBlankMark);
    if (!drops) return i;
    out.append(text.data() + 1, text.size() - 1);
    if (!parts_->drops_every_first || text.size() > 1) return i + 1;
  }
  return ids.size();
}

void JoinedPieces::decode_all(std::span<const int32_t> ids, ByteBuffer& out) const {
  const size_t before = out.size();
  while (!ids.empty()) {
    const auto size =
        static_cast<size_t>(std::find(ids.begin(), ids.end(), Tokenizer::kTextEnd) - ids.begin());
    const size_t begun = append_beginning(ids.first(size), out);
    append_texts(texts_, ids.subspan(begun, size + 1 - begun), out);
    ids = ids.subspan(size + 1);
  }
  const std::string_view added(out.data() + before, out.size() - before);
  if (!has_mark(added)) return;
  std::string done;
  append_unmarked(added, done);
  out.truncate(before);
  out.append(done.data(), done.size());
}

}  // namespace megalith
