#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libcore/checkpoint/gguf/gguf.h"
#include "libcore/convert/sources/tokenizer_folder.h"

namespace megalith {

/// Adds "tokenizer.ggml.…": kind, tokens, their types, merges or scores, the ids of special tokens and the
/// name that llama.cpp has for the splitting of texts. Ids that the tokenizer lacks are written as unused
/// tokens, because the list must be as long as the embedding. kData for a tokenizer that llama.cpp does not
/// know, by name.
void add_gguf_tokenizer(GgufMetadata& metadata, const HfTokenizerFiles& tokenizer, const std::string& where,
                        int64_t vocabulary);

/// llama.cpp's name of a pre_tokenizer of tokenizer.json ("gpt-2", "llama-bpe", "qwen2"); nothing for others.
/// kData for one without the keys that its kind has.
std::optional<std::string_view> known_split(const Json& stage);

}  // namespace megalith
