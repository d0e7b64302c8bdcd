#pragma once

#include <memory>
#include <string>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// Reads a Hugging Face tokenizer.json (`path` is the file, or the folder that holds it) with a BPE model, of
/// bytes or of characters. Whatever the file asks for and is not done here is refused with its place in the
/// file, never left out silently. From tokenizer_config.json beside it come "eos_token", which ends a
/// document (else "<|endoftext|>" when there is such a token), and "add_bos_token" and "add_eos_token", which
/// stand for the file's post-processor as in transformers. `special_tokens`: with what the post-processor
/// puts around a text. Form and rules: docs/formats/tokenizer.md. Throws kNoInput, kData.
std::unique_ptr<Tokenizer> read_hf_tokenizer(const std::string& path, bool special_tokens = true);

}  // namespace megalith
