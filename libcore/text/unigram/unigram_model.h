#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/text/bpe/character_borders.h"
#include "libcore/text/bpe/character_ids.h"
#include "libcore/text/bpe/token_texts.h"
#include "libcore/text/bpe/tokenizer_model.h"
#include "libcore/text/prefix_trie.h"

namespace megalith {

/// How a unigram model cuts a text: of all ways to cut it in tokens and unknown characters, the one whose
/// scores have the greatest sum. Sums are rounded, so which one that is depends on the order and the type of
/// the sums, and on which of two equal ones is kept: the first, as candidates come from left to right.
struct UnigramRules {
  enum class Sums : uint8_t {
    kFloat,   // SentencePiece 0.2.2 and later
    kDouble,  // Hugging Face tokenizers
  };
  Sums sums = Sums::kDouble;
  double unknown_score = 0;
  int32_t unknown = 0;  // what a run of unknown characters becomes
  /// The ids of the bytes of unknown characters, which are tried first; -1: no such token.
  CharacterIds::ByteIds bytes = CharacterIds::Unknown::none();
  /// Whether a run of unknown characters is looked up as a token before anything else.
  bool looks_up_runs = false;
  /// A pretoken begins at each mark, and is cut by itself. Empty: a text is one pretoken.
  std::string mark;
};

/// What a UnigramTokenizer computes from its model.
struct UnigramTables {
  TokenTexts tokens;
  SharedArray<PrefixTrie::Node> trie;
  SharedArray<uint64_t> scores;  // of each token, the bits of a double
  CharacterBorders::Arrays borders;
  std::string hash;

  double score(int32_t id) const { return std::bit_cast<double>(scores[static_cast<size_t>(id)]); }
  size_t longest() const;  // bytes of the longest token
  /// Whether these can be used together.
  static bool fit(const UnigramTables& tables);
};

/// Everything that a unigram tokenizer is made from. Filled by the readers of the file formats (hf_json.h,
/// sentencepiece_files.h).
struct UnigramModel : TokenizerModel {
  std::vector<double> scores;  // of each token
  UnigramRules rules;
  // Tables that another tokenizer computed from the same model. If they are given, tokens and scores are not
  // used.
  std::optional<UnigramTables> tables;
};

/// Computes the tables of a model. Throws kData for a token that is too long, and for a score that is not
/// finite.
UnigramTables make_tables(const UnigramModel& model);

}  // namespace megalith
