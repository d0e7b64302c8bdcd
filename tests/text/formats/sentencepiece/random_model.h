#pragma once

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "libcore/base/utf8.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_table.h"

namespace megalith::test {

using Table = SentencePieceTable;
constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581

/// Writes the bytes of a .model file (protobuf's encoding of sentencepiece_model.proto).
class ModelWriter {
 public:
  void number(uint64_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
  }
  void text(uint64_t field, std::string_view bytes) {
    varint(field << 3 | 2);
    varint(bytes.size());
    out_ += bytes;
  }
  void score(uint64_t field, float value) {
    varint(field << 3 | 5);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof bytes);
  }
  const std::string& bytes() const { return out_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

inline std::string bytes_of(const Table& table) {
  ModelWriter model, trainer, rules;
  for (const Table::Token& token : table.tokens) {
    ModelWriter piece;
    piece.text(1, token.text);
    piece.score(2, token.score);
    piece.number(3, static_cast<uint64_t>(token.type));
    model.text(1, piece.bytes());
  }
  trainer.number(3, static_cast<uint64_t>(table.trainer.kind));
  trainer.number(24, table.trainer.space_after);
  trainer.number(35, table.trainer.byte_fallback);
  trainer.text(44, table.trainer.unknown_text);
  trainer.text(47, table.trainer.end_token);
  model.text(2, trainer.bytes());
  rules.text(2, table.rules.charsmap);
  rules.number(3, table.rules.add_space);
  rules.number(4, table.rules.remove_extra_spaces);
  rules.number(5, table.rules.escape_spaces);
  model.text(3, rules.bytes());
  return model.bytes();
}

/// Characters of one to four bytes; the mark is frequent.
inline const std::vector<std::string> kPieceLetters = {
    "a", "b", std::string(kMark), "\u00e9", "c", "\u65e5", std::string(kMark), "\U0001F600", "1", "\n"};

/// A model of pieces of these letters, of all types, with few different scores or many, and any settings.
/// `charsmap` is used in some.
inline Table random_model(std::mt19937& random, const std::string& charsmap) {
  const auto one_in = [&](size_t n) { return random() % n == 0; };
  Table table;
  table.trainer.kind = Table::kBpe;
  table.trainer.byte_fallback = one_in(2);
  table.trainer.space_after = one_in(4);
  table.rules = {.charsmap = one_in(3) ? charsmap : "",
                 .add_space = !one_in(4),
                 .remove_extra_spaces = one_in(2),
                 .escape_spaces = !one_in(8)};
  table.tokens = {{"<unk>", 0, Table::kUnknown}, {"<s>", 0, Table::kControl}, {"</s>", 0, Table::kControl}};
  constexpr const char* kDigits = "0123456789ABCDEF";
  for (size_t byte = 0; table.trainer.byte_fallback && byte < 256; ++byte)
    table.tokens.push_back(
        {std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 0, Table::kByte});
  const size_t letters = 1 + random() % kPieceLetters.size(), levels = 1 + random() % 30;
  const bool rare_types = one_in(2), lacks_letters = one_in(3);
  const auto type = [&](size_t length) {
    if (!rare_types || !one_in(6)) return Table::kNormal;
    if (one_in(3)) return Table::kUnused;
    return length == 1 && one_in(2) ? Table::kControl : Table::kUserDefined;
  };
  std::set<std::string> known;
  const auto add = [&](const std::string& text, size_t length) {
    if (known.insert(text).second)
      table.tokens.push_back({text, -static_cast<float>(random() % levels), type(length)});
  };
  for (size_t i = 0; i < letters; ++i)
    if (!lacks_letters || !one_in(4)) add(kPieceLetters[i], 1);
  for (size_t n = random() % 120; n > 0; --n) {
    std::string text;
    const size_t length = 2 + random() % (one_in(10) ? 7 : 3);
    for (size_t i = 0; i < length; ++i) text += kPieceLetters[random() % letters];
    add(text, length);
  }
  return table;
}

/// A text, valid UTF-8, of the model's pieces, parts of them, blanks and odd characters.
inline std::string random_text(const Table& table, std::mt19937& random) {
  static const std::vector<std::string> kOdd = {
      "\uff21", "\u0301", "e\u0301", "\ufb01", "\u00a0", "\u3000",       "\u200b",       "\t",
      "\n",     "\r\n",   "\u00ad",  "<s>",    "</s>",   "<unk>",        "<0x41>",       "\ufffd",
      "\u2122", "\u2460", "\u0130",  "\u03a3", "\uac00", "\u1100\u1161", "\u30ab\u3099", "\uff76\uff9e",
      "\x7f",   "\x01",   "A",       "\u2581", " ",      "  ",           "\u00c5"};
  const auto pick = [&](const auto& list) -> const auto& {
    return list[random() % list.size()];
  };
  const size_t kind = random() % 7;
  std::string text;
  for (size_t n = 1 + random() % (random() % 4 == 0 ? 60 : 12); n > 0; --n) {
    const std::string& piece = pick(table.tokens).text;
    if (kind < 2) text += piece;
    if (kind == 2) text += pick(kPieceLetters);
    if (kind == 3) text += random() % 3 != 0 ? piece : std::string(random() % 5, ' ');
    if (kind == 4) text += random() % 2 == 0 ? pick(kOdd) : pick(kPieceLetters);
    if (kind == 5) text += piece.substr(0, random() % (piece.size() + 1));
    if (kind == 6)
      append_utf8(text, static_cast<uint32_t>(random() % 4 == 0 ? random() % 0x3000 : 32 + random() % 95));
  }
  if (random() % 2 == 0)
    for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark))
      text.replace(at, kMark.size(), " ");
  return replace_invalid_utf8(text);
}

}  // namespace megalith::test
