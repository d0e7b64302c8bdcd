#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/text/bpe/added_tokens.h"

namespace megalith {

/// What the models of all kinds are made from.
struct TokenizerModel {
  std::string name;                          // Megatron's --tokenizer-type
  std::vector<std::string> tokens;           // of each id, as texts have it; empty: no token has this id
  std::vector<AddedToken> raw_added;         // found first, in the original text
  std::vector<AddedToken> normalized_added;  // found in the rest, after the normalizer
  int32_t eod = -1;                          // id that ends a document; -1: the files do not name one
};

}  // namespace megalith
