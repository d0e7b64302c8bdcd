#include "libcore/text/formats/sentencepiece/sentencepiece_symbols.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/unicode/byte_alphabet.h"
#include "libcore/text/unicode/python_text.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

using Table = SentencePieceTable;

/// In bytes, of a unigram model's piece. The library takes no longer ones.
constexpr size_t kLongestPiece = 7999;

/// Calls take(end) with the end of each character of `text`.
template <class Take>
void each_end(std::string_view text, const Take& take) {
  for (size_t end = 0; end < text.size();) take(end += code_point_at(text.substr(end)).bytes);
}

bool is_character(std::string_view text) {
  return code_point_at(text).bytes == text.size();
}

/// Whether the mark is a token, so that it never becomes bytes.
bool has_mark(const Table& table) {
  return std::any_of(table.tokens.begin(), table.tokens.end(), [](const Table::Token& token) {
    return token.text == kBlankMark && (token.type == Table::kNormal || token.type == Table::kUserDefined);
  });
}

void check_bytes(const Table& table, const std::string& where) {
  for (const Table::Token& token : table.tokens) {
    if (token.type != Table::kByte) continue;
    if (!table.trainer.byte_fallback)
      fail(ErrorKind::kData, where, ": ", quote(token.text),
           " is a byte's piece, but the model says byte_fallback: false");
    if (byte_of_token(token.text) < 0)
      fail(ErrorKind::kData, where, ": ", quote(token.text),
           " is marked as a byte's piece; wanted \"<0x00>\" to \"<0xFF>\"");
  }
  if (!table.trainer.byte_fallback) return;
  const CharacterIds::ByteIds ids = byte_ids(table);
  const auto missing = std::find(ids.begin(), ids.end(), -1);
  if (missing != ids.end())
    fail(ErrorKind::kData, where, ": no piece for byte ", missing - ids.begin(),
         "; a model with byte_fallback has one for each of the 256 bytes");
}

}  // namespace

CharacterIds::ByteIds byte_ids(const Table& table) {
  CharacterIds::ByteIds ids = CharacterIds::Unknown::none();
  for (size_t id = 0; id < table.tokens.size(); ++id)
    if (const int byte = byte_of_token(table.tokens[id].text);
        table.tokens[id].type == Table::kByte && byte >= 0)
      ids[static_cast<size_t>(byte)] = static_cast<int32_t>(id);
  return ids;
}

std::string blank_of(const Table& table) {
  const bool short_blanks = table.rules.escape_spaces && (!table.trainer.byte_fallback || has_mark(table));
  return std::string(short_blanks || !table.rules.escape_spaces ? " " : kBlankMark);
}

/// A piece with a blank matches no normalized text: marks stand there for blanks.
std::string normalized_text(const Table& table, const Table::Token& token, const std::string& blank) {
  const bool escapes = table.rules.escape_spaces;
  if (!token.is_normal() || (escapes && token.text.find(' ') != std::string::npos)) return {};
  return escapes ? replaced(token.text, kBlankMark, blank) : token.text;
}

int32_t unknown_id(const Table& table) {
  const auto is_unknown = [](const Table::Token& token) { return token.type == Table::kUnknown; };
  return static_cast<int32_t>(std::find_if(table.tokens.begin(), table.tokens.end(), is_unknown) -
                              table.tokens.begin());
}

void check_sentencepiece(const Table& table, const std::string& where) {
  std::unordered_set<std::string_view> normal, reserved;
  std::string_view unknown;
  for (size_t id = 0; id < table.tokens.size(); ++id) {
    const Table::Token& token = table.tokens[id];
    if (token.text.empty()) fail(ErrorKind::kData, where, ": piece ", id, " has no text");
    if (!(token.is_normal() ? normal : reserved).insert(token.text).second)
      fail(ErrorKind::kData, where, ": piece ", quote(token.text), " appears twice");
    if (std::isnan(token.score))
      fail(ErrorKind::kData, where, ": the score of piece ", quote(token.text), " is not a number");
    if (std::isinf(token.score) && table.trainer.kind == Table::kUnigram)
      fail(ErrorKind::kData, where, ": the score of piece ", quote(token.text),
           " is infinite; a unigram model adds scores up");
    if (token.text.size() > kLongestPiece && table.trainer.kind == Table::kUnigram)
      fail(ErrorKind::kData, where, ": piece ", id, " has ", token.text.size(),
           " bytes; those of a unigram model have at most ", kLongestPiece);
    if (token.type != Table::kUnknown) continue;
    if (!unknown.empty())
      fail(ErrorKind::kData, where, ": two unknown pieces, ", quote(unknown), " and ", quote(token.text));
    unknown = token.text;
  }
  if (unknown.empty()) fail(ErrorKind::kData, where, ": no piece has the type UNKNOWN; wanted one");
  check_bytes(table, where);
}

SentencePieceSymbols::SentencePieceSymbols(const Table& table) {
  blank = blank_of(table);
  unknown.fuse = !table.trainer.byte_fallback;
  if (table.trainer.byte_fallback) unknown.bytes = byte_ids(table);
  unknown.id = unknown_id(table);
  add_texts(table);
  add_symbols(table);
  add_merges(table);
  find_ends(table);
}

void SentencePieceSymbols::add_texts(const Table& table) {
  for (size_t id = 0; id < table.tokens.size(); ++id) {
    const Table::Token& token = table.tokens[id];
    texts.push_back(normalized_text(table, token, blank));
    if (!texts.back().empty() && token.type == Table::kUserDefined)
      whole.push_back({.text = texts.back(), .id = static_cast<int32_t>(id)});
  }
}

/// Adds the characters of pieces that are not pieces themselves.
void SentencePieceSymbols::add_symbols(const Table& table) {
  std::unordered_set<std::string> characters;
  for (size_t id = 0; id < table.tokens.size(); ++id)
    if (table.tokens[id].type != Table::kUserDefined && !texts[id].empty() && is_character(texts[id]))
      characters.insert(texts[id]);
  for (size_t id = 0; id < table.tokens.size(); ++id) {
    if (table.tokens[id].type == Table::kUserDefined) continue;
    size_t begin = 0;
    const std::string text = texts[id];  // texts grows
    each_end(text, [&](size_t end) {
      std::string character = text.substr(begin, end - begin);
      if (characters.insert(character).second) texts.push_back(std::move(character));
      begin = end;
    });
  }
}

void SentencePieceSymbols::add_merges(const Table& table) {
  std::unordered_map<std::string_view, int32_t> ids;
  const auto is_user_defined = [&](size_t id) {
    return id < table.tokens.size() && table.tokens[id].type == Table::kUserDefined;
  };
  for (size_t id = 0; id < texts.size(); ++id)
    if (!texts[id].empty() && !is_user_defined(id)) ids.emplace(texts[id], static_cast<int32_t>(id));
  std::vector<float> scores;
  for (size_t id = 0; id < table.tokens.size(); ++id) {
    if (texts[id].empty() || is_user_defined(id)) continue;
    const std::string_view text = texts[id];
    each_end(text, [&](size_t end) {
      if (end == text.size()) return;
      const auto left = ids.find(text.substr(0, end));
      if (left == ids.end()) return;
      const auto right = ids.find(text.substr(end));
      if (right == ids.end()) return;
      merges.push_back({left->second, right->second, static_cast<int32_t>(id)});
      scores.push_back(table.tokens[id].score);
    });
  }
  std::vector<float> sorted = scores;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  for (const float score : scores)
    ranks.push_back(static_cast<uint32_t>(
        std::lower_bound(sorted.begin(), sorted.end(), score, std::greater<>()) - sorted.begin()));
}

/// Shorter symbols come first: they are parts of longer ones.
void SentencePieceSymbols::find_ends(const Table& table) {
  const auto is_unused = [&](size_t id) {
    return id < table.tokens.size() && table.tokens[id].type == Table::kUnused;
  };
  const bool all_tokens = texts.size() == table.tokens.size() &&
                          std::none_of(table.tokens.begin(), table.tokens.end(),
                                       [](const Table::Token& t) { return t.type == Table::kUnused; });
  if (all_tokens) return;
  std::vector<const TokenMerge*> made_by(texts.size());
  for (const TokenMerge& merge : merges) {
    const TokenMerge*& maker = made_by[static_cast<size_t>(merge.merged)];
    if (maker != nullptr && is_unused(static_cast<size_t>(merge.merged))) has_ambiguous_unused = true;
    maker = &merge;
  }
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return texts[a].size() < texts[b].size(); });
  ends.resize(texts.size());
  for (const size_t id : order) {
    const bool is_token = id < table.tokens.size() && !is_unused(id);
    if (is_token) {
      ends[id] = {static_cast<int32_t>(id)};
    } else if (made_by[id] != nullptr) {
      for (const int32_t part : {made_by[id]->left, made_by[id]->right})
        ends[id].insert(ends[id].end(), ends[static_cast<size_t>(part)].begin(),
                        ends[static_cast<size_t>(part)].end());
    } else if (unknown.fuse) {
      ends[id] = {*unknown.id};
    } else {
      for (const char byte : texts[id]) ends[id].push_back(unknown.bytes[static_cast<uint8_t>(byte)]);
    }
  }
}

}  // namespace megalith
