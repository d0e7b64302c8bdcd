#pragma once

#include <memory>
#include <string>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// A SentencePiece model as a Tokenizer; `type` is Megatron's GPTSentencePieceTokenizer or Llama2Tokenizer.
/// Adds no begin token; the model's </s> ends a document. The library is opened at the first call
/// (base/plugin.h). Throws kNoInput, kData; kDevice if the library is missing.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::string& type, const std::string& path);

}  // namespace megalith
