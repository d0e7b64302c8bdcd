#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// A SentencePiece model as in its file (sentencepiece_model.proto, ModelProto; pieces are called tokens
/// here). A field that the file does not have gets its default from that .proto file.
struct SentencePieceTable {
  enum Type : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Token {
    std::string text;
    float score = 0;
    int32_t type = kNormal;
    /// Whether the token is found in texts by its own text.
    bool is_normal() const { return type == kNormal || type == kUserDefined || type == kUnused; }
  };
  std::vector<Token> tokens;  // by id

  enum Kind : int32_t { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };
  struct Trainer {  // TrainerSpec
    int32_t kind = kUnigram;
    bool space_after = false;  // treat_whitespace_as_suffix
    bool byte_fallback = false;
    std::string end_token = "</s>";               // eos_piece
    std::string unknown_text = " \xE2\x81\x87 ";  // unk_surface: U+2047 between blanks
  } trainer;
  struct Rules {                      // NormalizerSpec
    std::string charsmap;             // precompiled_charsmap
    bool add_space = true;            // add_dummy_prefix
    bool remove_extra_spaces = true;  // remove_extra_whitespaces
    bool escape_spaces = true;        // escape_whitespaces
  } rules;
  bool denormalizes = false;  // whether texts go through another charsmap when they are decoded
};

/// `bytes` is the contents of a .model file; `where` begins every message. Throws kData.
SentencePieceTable parse_sentencepiece_table(std::string_view bytes, const std::string& where);

/// U+2581, which stands for a blank in tokens.
inline constexpr std::string_view kBlankMark = "\xE2\x96\x81";

/// The first token that is not valid UTF-8; null if there is none.
const SentencePieceTable::Token* find_invalid_text(const SentencePieceTable& table);
/// Throws kData, beginning with `where`, if there is such a token.
void check_token_texts(const SentencePieceTable& table, const std::string& where);

}  // namespace megalith
