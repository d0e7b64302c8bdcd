#pragma once

#include <memory>
#include <string>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// A SentencePiece model behind the Tokenizer interface (Megatron's GPTSentencePieceTokenizer and
/// Llama2Tokenizer, `type`): ids without a begin token, the model's </s> as end of a document. The
/// library is opened at the first call (base/plugin.h). Throws kNoInput, kData; kDevice when it is missing.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::string& type, const std::string& path);

}  // namespace megalith
