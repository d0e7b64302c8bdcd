#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// Where a tokenizer comes from; filled from the options --tokenizer-type, --vocab-file, --merge-file,
/// --tokenizer-model.
struct TokenizerFiles {
  std::string type;               // "GPT2BPETokenizer", "HuggingFaceTokenizer", "NullTokenizer", …
  std::string vocab;              // vocab.json (GPT2BPETokenizer)
  std::string merges;             // merges.txt (GPT2BPETokenizer)
  std::string model;              // tokenizer.json or its folder, a SentencePiece model, tiktoken's ranks
  int vocab_size = 0;             // --vocab-size: NullTokenizer; TikTokenizer, where 0 is Megatron's 131072
  bool hf_special_tokens = true;  // HuggingFaceTokenizer: what the post-processor adds, such as <s>
  std::string tiktoken_pattern = "v2";
  int tiktoken_special_tokens = 1000;
  std::vector<std::string> special_tokens = {};  // --tokenizer-special-tokens
  /// --eod-token: ends a document instead of what the files say (GPT-2, Hugging Face).
  std::string eod = {};
};

/// Reads the files and makes the tokenizer. Throws kUsage for an unknown type (with the nearest known one) or
/// a missing option, kNoInput for a missing file, kData for a malformed one, and for one of a checkpoint that
/// is not as it was saved (text/saved_tokenizer.h).
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerFiles&);

}  // namespace megalith
