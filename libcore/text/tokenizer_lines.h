#pragma once

#include <iosfwd>
#include <string>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// Encodes and decodes lines of text, to show what a tokenizer does.
struct TokenizerLines {
  const Tokenizer& tokenizer;
  bool json = false;  // a text is a JSON string, so it may hold line ends

  /// Writes for each line of `input` ("-": stdin; compressed files too) its ids, separated by blanks. Throws
  /// kNoInput, kIo; kData with FILE:LINE for what is not UTF-8 text, or not a JSON string.
  void encode(const std::string& input, std::ostream& out) const;
  /// The reverse of encode(). kData with FILE:LINE for what is not a list of the tokenizer's ids.
  void decode(const std::string& input, std::ostream& out) const;
};

}  // namespace megalith
