#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libcore/text/bpe/added_tokens.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_symbols.h"

namespace megalith {

/// Encodes texts with a model in which an unused piece can be made of symbols in several ways. Where such a
/// piece is left, the library replaces it by the pair that it considered last for it, anywhere in the text
/// (bpe_model.cc, rev_merge). So this does the library's steps in its order, for the text as a whole. It is
/// slow, but no published model needs it. Const and thread-safe.
class WholeTextEncoder {
 public:
  /// `table`: what `symbols` were made from.
  WholeTextEncoder(const SentencePieceTable& table, SentencePieceSymbols symbols);
  WholeTextEncoder(WholeTextEncoder&&) = default;  // its maps refer to its texts, so it cannot be copied

  /// Appends the ids of a normalized text.
  void encode(std::string_view normalized, std::vector<int32_t>& ids) const;

 private:
  class Run;
  struct Made {  // what a pair of symbols is joined to
    int32_t id;
    uint32_t rank;
  };
  static uint64_t pair_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  SentencePieceSymbols symbols_;
  std::vector<bool> is_token_, is_unused_;   // by id
  std::unordered_map<uint64_t, Made> made_;  // by pair
  std::unordered_map<std::string_view, int32_t> characters_, whole_ids_;
  AddedTokens whole_;
};

}  // namespace megalith
