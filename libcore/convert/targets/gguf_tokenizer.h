#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libcore/checkpoint/gguf/gguf.h"
#include "libcore/convert/sources/tokenizer_folder.h"

namespace megalith {

/// Adds the "tokenizer.ggml.…" members: the tokenizer's kind, the tokens, their types, merges or scores, the
/// ids of special tokens, and llama.cpp's name for the way in which texts are split. Ids without a token are
/// written as unused tokens, since the list must be as long as the embedding. Throws kData, with its name,
/// for a tokenizer that llama.cpp does not support.
void add_gguf_tokenizer(GgufMetadata& metadata, const HfTokenizerFiles& tokenizer,
                        const TokenizerFolder& from, int64_t vocabulary);

/// llama.cpp's name ("gpt-2", "llama-bpe", "qwen2") for `stage`, the "pre_tokenizer" of a tokenizer.json.
/// Returns nothing if llama.cpp has no name for it. Throws kData if `stage` lacks a key that its type
/// requires.
std::optional<std::string_view> known_split(const Json& stage);

}  // namespace megalith
