#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/text/bpe/token_texts.h"
#include "libcore/text/bpe/tokenizer_model.h"
#include "libcore/text/prefix_trie.h"
#include "libcore/text/wordpiece/word_classes.h"

namespace megalith {

/// How a WordPiece model cuts a text: into words, and each word into tokens, at each place the longest that
/// fits. A word that cannot be cut so is unknown as a whole.
struct WordPieceRules {
  WordCuts cuts;
  std::string prefix = "##";  // of the tokens that continue a word
  int32_t unknown = 0;
  uint64_t longest_word = 100;  // in characters; a longer one is unknown
};

/// What a WordPieceTokenizer computes from its model.
struct WordPieceTables {
  TokenTexts tokens;
  SharedArray<PrefixTrie::Node> firsts;  // the tokens with which words begin
  SharedArray<PrefixTrie::Node> others;  // those that continue words, without their prefix
  std::string hash;
};

/// Everything that a WordPiece tokenizer is made from. Filled by the reader of the files (hf_json.h).
struct WordPieceModel : TokenizerModel {
  WordPieceRules rules;
  // Tables that another tokenizer computed from the same model. If they are given, tokens are not used.
  std::optional<WordPieceTables> tables;
};

/// Computes the tables of a model.
WordPieceTables make_tables(const WordPieceModel& model);

}  // namespace megalith
