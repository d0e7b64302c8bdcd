#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// Turns the tokens of a continuation into text as they come. Text that may still change is held back: bytes
/// that are not yet a whole character (at most 16 tokens are held back for this), and text that may be the
/// beginning of a stop string. All pieces together equal the result of decoding everything at once, up to the
/// first stop string, which is left out. The only exception is a decoder that takes back characters that were
/// already whole (ByteFallback, for a run of byte tokens that contains a bad byte). A token takes the same
/// time however many precede it.
class TextStream {
 public:
  /// `prompt`: the ids that the text continues. They are needed since a tokenizer may treat the beginning of
  /// a text differently.
  TextStream(const Tokenizer&, std::span<const int32_t> prompt, std::vector<std::string> stops = {});

  /// The text that this token makes certain; may be empty.
  std::string push(int32_t token);
  /// The rest of the text. Call it after the last token.
  std::string finish();
  /// Whether a stop string was found, so that nothing more comes.
  bool stopped() const { return stopped_; }

 private:
  std::string release(bool all);
  /// How many tokens of ids_ have certain text, so that no half character is printed. `both` is the text of
  /// all of ids_; if it ends with a whole character, all tokens do.
  size_t certain_tokens(const std::string& both) const;
  /// Where in held_ the first stop string begins or, if more text comes, may begin; the size of held_ if
  /// there is none.
  size_t certain(bool more_comes) const;

  const Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  std::vector<int32_t> ids_;  // the context that decoding needs, then tokens whose text is not certain yet
  size_t known_ = 0;          // the first known_ tokens of ids_ already gave their text to held_
  std::string held_;          // decoded, but held back for the stop strings
  bool stopped_ = false;
};

}  // namespace megalith
