#pragma once

#include <string>

#include "libcore/text/byte_level_tokenizer.h"

namespace megalith {

/// Reads a Hugging Face tokenizer.json (`path` is the file, or the folder that holds it): byte-level BPE with
/// the ByteLevel pre-tokenizer and added tokens. Whatever else the file asks for is refused by its name,
/// never left out silently. The end of a document is "eos_token" of tokenizer_config.json beside it, else
/// "<|endoftext|>" when there is such a token. Form and rules: docs/formats/tokenizer.md. Throws kNoInput,
/// kData.
ByteLevelModel read_hf_tokenizer(const std::string& path);

}  // namespace megalith
