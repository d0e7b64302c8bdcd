#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/text/bpe/added_tokens.h"
#include "libcore/text/bpe/character_ids.h"
#include "libcore/text/bpe/long_merge.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_table.h"

namespace megalith {

/// Throws kData, beginning with `where`, for a model that the library refuses (model_interface.cc:
/// InitializePieces): an empty piece, one that appears twice, no or two unknown pieces, bytes that are
/// missing or not expected; and for a score that is not a number, or infinite in a unigram model.
void check_sentencepiece(const SentencePieceTable& table, const std::string& where);

/// How normalized texts write a blank. Models write U+2581. Here it stays a blank, which has one byte instead
/// of three and is faster, unless the model needs the bytes of U+2581.
std::string blank_of(const SentencePieceTable& table);
/// The text of a piece as normalized texts have it, with `blank` for a blank; empty: none has it.
std::string normalized_text(const SentencePieceTable& table, const SentencePieceTable::Token& token,
                            const std::string& blank);
/// The id of the piece for unknown characters; the table has one (check_sentencepiece()).
int32_t unknown_id(const SentencePieceTable& table);
/// The ids of the 256 bytes; -1: there is no piece for the byte.
CharacterIds::ByteIds byte_ids(const SentencePieceTable& table);

/// A SentencePiece BPE model as merges of symbols. The library joins the two neighbours whose text together
/// is the piece with the best score, the leftmost of equal ones (bpe_model.cc). So each way to cut a piece in
/// two symbols is a merge, and its rank is the place of the piece's score among all scores. Where releases of
/// the library differ, this is what 0.2.3 does:
/// - User-defined pieces are found first and are not merged with what is around them.
/// - A character that occurs in pieces but is none itself is a symbol, not a token. Where it is left after
///   merging, it is unknown.
/// - Control, byte and unknown pieces have no text. A character that is one of them is unknown.
/// - An unused piece is merged like others. Where it is left, the two symbols that it was made of replace it,
///   and so on; a single character is unknown.
/// - An unknown character becomes its bytes, if the model has them; otherwise a run of them is one token.
struct SentencePieceSymbols {
  /// `table` has passed check_sentencepiece().
  explicit SentencePieceSymbols(const SentencePieceTable& table);

  std::string blank;  // the result of blank_of()
  /// Texts of the tokens and then of the other symbols, as normalized texts have them; empty: none has it.
  std::vector<std::string> texts;
  std::vector<TokenMerge> merges;
  std::vector<uint32_t> ranks;  // of each merge
  CharacterIds::Unknown unknown;
  CharacterIds::Ends ends;        // empty: all symbols are tokens
  std::vector<AddedToken> whole;  // the user-defined pieces
  /// Whether an unused piece can be made of symbols in several ways. Which of them counts depends on the
  /// whole text.
  bool has_ambiguous_unused = false;

 private:
  void add_texts(const SentencePieceTable& table);
  void add_symbols(const SentencePieceTable& table);
  void add_merges(const SentencePieceTable& table);
  void find_ends(const SentencePieceTable& table);
};

}  // namespace megalith
