#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// The vocabulary of a SentencePiece model as in its file (sentencepiece_model.proto: ModelProto.pieces,
/// called tokens here).
struct SentencePieceTable {
  enum Type : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Token {
    std::string text;
    float score = 0;
    int32_t type = kNormal;
  };
  std::vector<Token> tokens;  // by id
};

/// `bytes` is the contents of a .model file; `where` begins every message. Throws kData.
SentencePieceTable parse_sentencepiece_table(std::string_view bytes, const std::string& where);

}  // namespace megalith
