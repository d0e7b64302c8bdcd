#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libcore/text/tokenizer.h"

namespace megalith {

struct HfSettings {
  bool around = true;  // with what the post-processor puts around a text
  /// Special tokens beside those of the file, found as text; those that have no ids yet get the next free
  /// ones.
  std::vector<std::string> special = {};
  std::string eod = {};  // the token that ends documents; empty: the files'
};

/// Reads a Hugging Face tokenizer.json (`path` is the file, or the folder that holds it) with a BPE model, of
/// bytes or of characters. Whatever the file asks for and is not done here is refused with its place in the
/// file, never left out silently. From tokenizer_config.json beside it come "eos_token", which ends a
/// document (else "<|endoftext|>" when there is such a token). Form and rules: docs/formats/tokenizer.md.
/// Throws kNoInput, kData.
std::unique_ptr<Tokenizer> read_hf_tokenizer(const std::string& path, const HfSettings& = {});

}  // namespace megalith
