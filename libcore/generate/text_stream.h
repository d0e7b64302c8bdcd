#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// The text of `ids`. An id above the tokenizer's vocabulary, which a model with a padded vocabulary may
/// choose, has none.
std::string text_of_known(const Tokenizer&, std::span<const int32_t> ids);

/// Turns the tokens of a continuation into text, token by token. Holds back text that may still change: bytes
/// that are not yet a whole character (for this, at most 16 tokens are held back), and text that may be the
/// beginning of a stop string. All pieces together equal the result of decoding all tokens at once, up to the
/// first stop string, which is left out. There is one exception: a decoder that takes back whole characters
/// (ByteFallback, for a run of byte tokens with a bad byte). The time for a token does not depend on how many
/// tokens precede it.
class TextStream {
 public:
  /// `prompt`: the ids before the continuation. They are needed because a tokenizer may decode the beginning
  /// of a text differently.
  TextStream(const Tokenizer&, std::span<const int32_t> prompt, std::vector<std::string> stops = {});

  /// The text that this token makes certain; may be empty, and is for a token above the tokenizer's
  /// vocabulary.
  std::string push(int32_t token);
  /// The rest of the text. Call it after the last token.
  std::string finish();
  /// Whether a stop string was found, so that nothing more comes.
  bool stopped() const { return stopped_; }

 private:
  std::string release(bool all);
  /// The number of tokens at the beginning of ids_ whose text is certain, so that no half character is
  /// printed. `both` is the text of all of ids_; if it ends with a whole character, all of it is certain.
  size_t certain_tokens(const std::string& both) const;
  /// The position in held_ at which the first stop string begins or, if more text comes, may begin. The size
  /// of held_ if there is none.
  size_t certain(bool more_comes) const;

  const Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  std::vector<int32_t> ids_;  // the context for decoding, then the tokens whose text is not certain yet
  size_t known_ = 0;  // size of the context: the prompt's last tokens, and those whose text is certain
  std::string held_;  // decoded text that is held back because of the stop strings
  bool stopped_ = false;
};

}  // namespace megalith
