#pragma once

#include <iosfwd>
#include <string>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// Lines of text through a tokenizer, to look at what it does.
struct TokenizerLines {
  const Tokenizer& tokenizer;
  bool json = false;  // a text is a JSON string, so that it may hold ends of lines

  /// Writes for each line of `input` ("-": stdin; compressed ones too) its ids, with a blank between them.
  /// Throws kNoInput, kIo; kData with FILE:LINE for what is no text in UTF-8, or no JSON string.
  void encode(const std::string& input, std::ostream& out) const;
  /// The way back. kData with FILE:LINE for what is no list of ids of the tokenizer.
  void decode(const std::string& input, std::ostream& out) const;
};

}  // namespace megalith
