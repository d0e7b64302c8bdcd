#pragma once

#include <iosfwd>
#include <string>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// Encodes and decodes lines of text, to show what a tokenizer does.
struct TokenizerLines {
  const Tokenizer& tokenizer;
  bool json = false;   // whether a text is a JSON string, which may hold line ends
  size_t workers = 1;  // threads

  /// Writes the ids of each line of `input` ("-": stdin; compressed files too), separated by blanks. Throws
  /// kNoInput, kIo; kData with FILE:LINE for a line that is not UTF-8 text, or not a JSON string. The rows of
  /// the lines before that one are written.
  void encode(const std::string& input, std::ostream& out) const;
  /// The reverse of encode(). kData with FILE:LINE for a line that is not a list of the tokenizer's ids.
  void decode(const std::string& input, std::ostream& out) const;
};

}  // namespace megalith
