#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/evaluate/reading_plan.h"
#include "libcore/generate/sources/generation_files.h"
#include "libcore/text/tokenizer.h"

namespace megalith {

/// Turns texts into tokens to be scored, by the rules of lm-evaluation-harness 0.4.13.
class PairEncoder {
 public:
  /// `tokenizer`: with the ids that it puts around a text. `length`: the model's positions.
  PairEncoder(const Tokenizer& tokenizer, const GenerationFiles& files, int64_t length);

  /// The tokens of a continuation, scored, after those of its context. Blanks at the context's end belong to
  /// the continuation. Tokens in front that exceed the model's positions are left out. kData, with `where`,
  /// for a continuation without tokens, or with more than the positions.
  ScoredTokens pair(std::string_view context, std::string_view continuation, std::string_view where);
  /// The windows in which each token of a text is scored once: the first begins with the token that begins a
  /// text, the others are as long as the model's positions. Empty for a text without tokens.
  std::vector<ScoredTokens> windows(std::string_view text) const;

  /// The token that stands for what precedes a text: the one that begins a text, else the one that ends it.
  int32_t first_token() const { return first_; }
  int64_t cut() const { return cut_; }  // the number of pairs of which tokens were left out

 private:
  std::vector<int32_t> encode(std::string_view text) const;
  std::vector<int32_t> encode_alone(std::string_view text) const;  // without the ids around it

  const Tokenizer& tokenizer_;
  int32_t first_;
  std::string first_text_;
  int64_t length_, cut_ = 0;
  std::string context_;  // of the last pair: choices of one item have the same
  std::vector<int32_t> context_ids_;
};

}  // namespace megalith
