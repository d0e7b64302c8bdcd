#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libcore/text/tokenizer.h"

namespace megalith {

struct HfSettings {
  bool around = true;  // whether to add the ids that the post-processor puts around a text
  /// Special tokens in addition to those of the file, found as text. Those that have no ids yet get the next
  /// free ones.
  std::vector<std::string> special = {};
  std::string eod = {};  // the token that ends documents; empty: the token that the files name
};

/// Reads a Hugging Face tokenizer.json (`path` is the file or the folder that holds it) with a BPE model of
/// bytes or characters, a Unigram or a WordPiece model. Anything in the file that is not supported is refused
/// with its place in the file, never ignored silently. A tokenizer_config.json next to it names "eos_token",
/// which ends a document (otherwise "<|endoftext|>" does, if there is such a token). Format and rules:
/// docs/formats/tokenizer.md. Throws kNoInput, kData.
std::unique_ptr<Tokenizer> read_hf_tokenizer(const std::string& path, const HfSettings& = {});

}  // namespace megalith
