#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libcore/checkpoint/gguf/gguf.h"
#include "libcore/convert/sources/tokenizer_folder.h"

namespace megalith {

/// Adds "tokenizer.ggml.…": kind, tokens, their types, merges or scores, the ids of special tokens and
/// llama.cpp's name for the splitting of texts. Ids without a token are written as unused tokens, since the
/// list must be as long as the embedding. kData, with its name, for a tokenizer that llama.cpp does not know.
void add_gguf_tokenizer(GgufMetadata& metadata, const HfTokenizerFiles& tokenizer,
                        const TokenizerFolder& from, int64_t vocabulary);

/// llama.cpp's name for a pre_tokenizer of tokenizer.json ("gpt-2", "llama-bpe", "qwen2"); nothing for
/// others. kData for one without the keys of its kind.
std::optional<std::string_view> known_split(const Json& stage);

}  // namespace megalith
