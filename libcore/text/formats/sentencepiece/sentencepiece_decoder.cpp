#include "libcore/text/formats/sentencepiece/sentencepiece_decoder.h"

#include <unordered_map>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"
#include "libcore/text/tokenizer.h"
#include "libcore/text/unicode/byte_alphabet.h"

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

}  // namespace megalith
