#pragma once

#include <memory>
#include <string>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// A SentencePiece model as a Tokenizer; `type` is Megatron's GPTSentencePieceTokenizer or Llama2Tokenizer.
/// Adds no begin token; the model's </s> ends a document. BPE and unigram models are encoded here, with the
/// ids of the library's release 0.2.3, and what is made of them is kept for later runs (packed_model.h).
/// Other models, those with a denormalizer and those with pieces that are not UTF-8 are left to the library.
/// Throws kNoInput, kData; kDevice if the library is needed and missing.
std::unique_ptr<Tokenizer> read_sentencepiece_tokenizer(const std::string& type, const std::string& path);

}  // namespace megalith
