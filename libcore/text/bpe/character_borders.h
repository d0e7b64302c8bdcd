#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/shared_array.h"
#include "libcore/text/bpe/added_tokens.h"
#include "libcore/text/bpe/character_ids.h"
#include "libcore/text/bpe/long_merge.h"

namespace megalith {

/// Cuts texts into pretokens for a vocabulary of characters whose files define none (SentencePiece's models,
/// and tokenizer.json without a pre_tokenizer). A text is cut between two neighbouring characters unless some
/// merge joins a token that ends with the first to one that begins with the second (or, for a vocabulary
/// without merges, unless they are neighbours in some token). No token reaches across such a place, so
/// encoding the parts separately gives the same ids, and most parts recur: in English with Mistral's
/// vocabulary they have 3.5 bytes on average, and the token cache knows 97 % of them.
class CharacterBorders {
 public:
  /// `symbols`: the text of each id of `merges`.
  CharacterBorders(const std::vector<std::string>& symbols, std::span<const TokenMerge> merges,
                   const CharacterIds& characters);
  /// For a vocabulary without merges: `tokens` are the texts of its ids, `mark` is that of
  /// always_cut_before().
  CharacterBorders(std::span<const std::string> tokens, std::string_view mark);

  struct Arrays {
    // Whether ASCII characters a and b are joined: bit b % 64 of ascii[2 * a + b / 64].
    SharedArray<uint64_t> ascii;
    // A bit for the hash of each joined pair with a character outside ASCII. Two pairs may share a bit: then
    // a text is not cut at a place where it could be.
    SharedArray<uint64_t> others;
    // A bit for each code point that certainly gives no unknown token. Two neighbours without the bit are not
    // cut apart, since they may give one unknown token together. Empty: they never do.
    SharedArray<uint64_t> known;
  };
  const Arrays& arrays() const { return arrays_; }
  /// Reuses the arrays of another instance, such as those of a mapped cache file.
  explicit CharacterBorders(Arrays arrays);
  static bool fit(const Arrays& arrays);

  /// Makes each of these texts a pretoken of its own wherever it occurs, from left to right; of several that
  /// begin at one place, the longest.
  void keep_whole(std::vector<AddedToken> texts);

  /// Cuts texts before every `mark`, a character or nothing, even if it continues a token.
  void always_cut_before(std::string_view mark);

  /// Works as a FindPretokens (pretokenizer.h): the pretokens are the parts between borders.
  size_t find(std::string_view utf8, std::span<uint32_t> ends) const;
  /// How many bytes after a border decide that it is one.
  size_t look_ahead() const { return look_ahead_; }

 private:
  bool joins(uint32_t a, uint32_t b) const;
  size_t others_bit(uint32_t a, uint32_t b) const;
  bool may_be_unknown(uint32_t c) const;
  struct Pair {
    uint32_t a, b;
    auto operator<=>(const Pair&) const = default;
  };
  void join(std::vector<Pair> pairs);
  static std::vector<Pair> joined_pairs(const std::vector<std::string>& symbols,
                                        std::span<const TokenMerge> merges);
  struct Scan;
  void scan_ascii(Scan& scan) const;

  Arrays arrays_;
  int shift_ = 63;
  uint32_t cut_before_ = UINT32_MAX;
  AddedTokens whole_;
  size_t look_ahead_ = kLongestCharacter;
  static constexpr size_t kLongestCharacter = 4;
};

}  // namespace megalith
