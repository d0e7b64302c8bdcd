#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libcore/checkpoint/gguf/gguf.h"
#include "libcore/convert/sources/tokenizer_folder.h"

namespace megalith {

/// Adds "tokenizer.ggml.…": kind, tokens, their types, merges or scores, the ids of special tokens and
/// llama.cpp's name for the way in which texts are split. Ids without a token are written as unused tokens,
/// since the list must be as long as the embedding. kData for a tokenizer that llama.cpp does not know; the
/// message names it.
void add_gguf_tokenizer(GgufMetadata& metadata, const HfTokenizerFiles& tokenizer,
                        const TokenizerFolder& from, int64_t vocabulary);

/// llama.cpp's name ("gpt-2", "llama-bpe", "qwen2") for `stage`, the "pre_tokenizer" of a tokenizer.json;
/// nothing if no name is known. kData if `stage` lacks a key that its type requires.
std::optional<std::string_view> known_split(const Json& stage);

}  // namespace megalith
