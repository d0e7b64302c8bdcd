#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// Turns the tokens of a continuation into text as they come. What may still change is held back: bytes that
/// are no whole character yet (of at most 16 tokens), and text that may be the beginning of a stop
/// string. The pieces together are what decoding everything at once gives, up to the first stop string, which
/// is left out; except where a decoder takes back characters that were whole already (ByteFallback: those of
/// a run of byte tokens with a bad byte in it). A token takes the same time however many came before it.
class TextStream {
 public:
  /// `prompt`: the ids that the text continues, needed because a tokenizer may treat the beginning of a text
  /// differently.
  TextStream(const Tokenizer&, std::span<const int32_t> prompt, std::vector<std::string> stops = {});

  /// The text that this token makes certain, possibly none.
  std::string push(int32_t token);
  /// The rest, after the last token.
  std::string finish();
  /// A stop string has been found: nothing more comes.
  bool stopped() const { return stopped_; }

 private:
  std::string release(bool all);
  /// Tokens of ids_ whose text is certain, so that no half character is printed: all when `both`, the text of
  /// all, ends with a whole character.
  size_t certain_tokens(const std::string& both) const;
  /// Where in held_ the first stop string begins, or, when more comes, may begin; its size when nowhere.
  size_t certain(bool more_comes) const;

  const Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  std::vector<int32_t> ids_;  // context that decoding needs, then those whose text is not known
  size_t known_ = 0;          // of ids_: their text was taken
  std::string held_;          // decoded, and held back for the stop strings
  bool stopped_ = false;
};

}  // namespace megalith
